// JSON lines, as W&B's history, MMEngine's scalars and fairseq have them.
#include <cmath>
#include <string_view>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_members.hpp>
#include <halfscope/scaling/detail/log_record.hpp>
#include <halfscope/scaling/detail/object_walk.hpp>

namespace halfscope {
namespace {

class ObjectLog {
 public:
  explicit ObjectLog(const LogColumns& columns) : walk_(columns) {}

  /// Whether the line is one of objects with a step: of one, or of the entries of a list.
  bool line(const LogText& line, const SkipLogSink& sink) {
    // The history of trainer_state.json is another reader's.
    in_history_ = in_history_ || line.text.find(history_key) != std::string_view::npos;
    if (in_history_) return true;
    const auto part = walk_.line(line.text, line.number, [&](LogRecord& record) { take(record, sink); });
    return part != ObjectWalk::Part::none;
  }

 private:
  void take(LogRecord& record, const SkipLogSink& sink) {
    const bool is_fairseq =
        record.at(LogRole::global_step) && record.at(LogRole::global_step)->name == "num_updates";
    if (is_fairseq) leave_rounded(record);
    (is_fairseq ? fairseq_ : steps_).hand_over(record, sink);
  }

  /// A scale below 1 is rounded, and a norm is a mean.
  static void leave_rounded(LogRecord& record) {
    auto& scale = record.fields[static_cast<std::size_t>(LogRole::scale)];
    record.is_told = scale.has_value();
    if (scale && scale->value < 1) scale.reset();
    auto& norm = record.fields[static_cast<std::size_t>(LogRole::norm)];
    if (norm && std::isfinite(norm->value)) norm.reset();
  }

  ObjectWalk walk_;
  LogRecordSteps steps_{"json"}, fairseq_{"fairseq"};
  bool in_history_ = false;
};

}  // namespace

LogLineReader read_json(const LogColumns& columns) {
  return [log = ObjectLog(columns)](const LogText& line, const SkipLogSink& sink) mutable {
    return log.line(line, sink);
  };
}

}  // namespace halfscope
