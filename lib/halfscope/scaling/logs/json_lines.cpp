// JSON lines, as W&B's history, MMEngine's scalars and fairseq have them.
#include <cmath>
#include <string_view>
#include <vector>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_members.hpp>
#include <halfscope/scaling/detail/log_record.hpp>

namespace halfscope {
namespace {

class ObjectLog {
 public:
  explicit ObjectLog(const LogColumns& columns) : names_(columns) {}

  /// Whether the line is an object with a step.
  bool line(const LogText& line, const SkipLogSink& sink) {
    // The history of trainer_state.json is another reader's.
    in_history_ = in_history_ || line.text.find(history_key) != std::string_view::npos;
    const std::size_t begin = line.text.find("{\"");
    if (in_history_ || begin == std::string_view::npos) return in_history_;
    fields_.clear();
    find_log_fields(line.text.substr(begin), names_, fields_);
    if (is_cut_object(line.text.substr(begin), fields_)) return true;
    LogRecord record{.line = line.number};
    for (const LogField& field : fields_) record.take(field);
    if (!record.has_step()) return false;
    const bool is_fairseq =
        record.at(LogRole::global_step) && record.at(LogRole::global_step)->name == "num_updates";
    if (is_fairseq) leave_rounded(record);
    (is_fairseq ? fairseq_ : steps_).hand_over(record, sink);
    return true;
  }

 private:
  /// A scale below 1 is rounded, and a norm is a mean.
  static void leave_rounded(LogRecord& record) {
    auto& scale = record.fields[static_cast<std::size_t>(LogRole::scale)];
    record.is_told = scale.has_value();
    if (scale && scale->value < 1) scale.reset();
    auto& norm = record.fields[static_cast<std::size_t>(LogRole::norm)];
    if (norm && std::isfinite(norm->value)) norm.reset();
  }

  LogNames names_;
  std::vector<LogField> fields_;
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
