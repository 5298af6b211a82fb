// JSON lines, as W&B's history, MMEngine's scalars and fairseq have them.
#include <cmath>
#include <string_view>
#include <vector>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_members.hpp>
#include <halfscope/scaling/detail/log_record.hpp>

namespace halfscope {
namespace {

/// The object that `text` begins with, those inside of it too; empty where no brace closes it.
std::string_view first_object(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        in_string = false;
    } else if (text[i] == '"') {
      in_string = true;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && --depth == 0) {
      return text.substr(0, i + 1);
    }
  }
  return {};
}

class ObjectLog {
 public:
  explicit ObjectLog(const LogColumns& columns) : names_(columns) {}

  /// Whether the line has objects with a step: one, or the entries of an array.
  bool line(const LogText& line, const SkipLogSink& sink) {
    // The history of trainer_state.json is another reader's.
    in_history_ = in_history_ || line.text.find(history_key) != std::string_view::npos;
    if (in_history_) return true;
    bool has_steps = false;
    std::string_view rest = line.text;
    for (std::size_t begin = rest.find(opening); begin != std::string_view::npos;
         begin = rest.find(opening)) {
      const std::string_view text = first_object(rest.substr(begin));
      if (text.empty()) return true;  // cut
      if (object(text, line.number, sink)) has_steps = true;
      rest.remove_prefix(begin + text.size());
    }
    return has_steps;
  }

 private:
  static constexpr std::string_view opening = "{\"";

  bool object(std::string_view text, std::int64_t number, const SkipLogSink& sink) {
    fields_.clear();
    find_log_fields(text, names_, fields_);
    LogRecord record{.line = number};
    for (const LogField& field : fields_) record.take(field);
    if (!record.has_step()) return false;
    const bool is_fairseq =
        record.at(LogRole::global_step) && record.at(LogRole::global_step)->name == "num_updates";
    if (is_fairseq) leave_rounded(record);
    (is_fairseq ? fairseq_ : steps_).hand_over(record, sink);
    return true;
  }

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
