// Hugging Face's Trainer: the history in trainer_state.json, and the dictionaries that it prints.
#include <algorithm>
#include <utility>
#include <vector>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_members.hpp>
#include <halfscope/scaling/detail/log_record.hpp>

namespace halfscope {
namespace {

class TrainerLog {
 public:
  explicit TrainerLog(const LogColumns& columns) : names_(columns) {}

  bool line(LogText line, const SkipLogSink& sink) {
    if (const std::size_t at = line.text.find(history_key); at != std::string_view::npos) {
      in_history_ = true;
      line.text.remove_prefix(at + history_key.size());
    }
    if (in_history_) {
      entries(line, sink);
      return true;
    }
    return dictionary(line, sink);
  }

 private:
  /// trainer_state.json has a member on each line, or all of it on one; an entry of its history ends with a
  /// brace.
  void entries(const LogText& line, const SkipLogSink& sink) {
    std::string_view text = line.text;
    for (std::size_t end = text.find('}'); end != std::string_view::npos; end = text.find('}')) {
      members(text.substr(0, end));
      entry_.line = line.number;
      entry_.is_filtered = true;
      hand_over(std::exchange(entry_, {}), sink);
      text.remove_prefix(end + 1);
    }
    members(text);
  }

  void members(std::string_view text) {
    fields_.clear();
    find_log_fields(text, names_, fields_);
    for (const LogField& field : fields_) entry_.take(field);
  }

  /// "{'loss': 2.04, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.28}", which mostly has no step: the
  /// progress bar numbers it, and else its place among the dictionaries. LLaMA-Factory writes objects.
  bool dictionary(const LogText& line, const SkipLogSink& sink) {
    const bool is_object = line.text.find("\"current_steps\"") != std::string_view::npos;
    const std::size_t begin = line.text.find(is_object ? "{\"" : "{'");
    const bool has_rate = has_member(line.text, "'learning_rate'");
    if (begin == std::string_view::npos || !(is_object || has_rate || has_member(line.text, "'epoch'")))
      return false;
    fields_.clear();
    find_log_fields(line.text.substr(begin), names_, fields_);
    if (fields_.empty() || is_cut_object(line.text.substr(begin), fields_)) return false;
    LogRecord record{.line = line.number};
    for (const LogField& field : fields_) record.take(field);
    const bool is_summary = line.text.find("train_runtime") != std::string_view::npos;
    if (is_summary || !record.has_values()) return true;
    if (!record.has_step()) {
      const std::int64_t number = std::max(dictionaries_ + 1, line.bar_done);
      is_numbered_ = is_numbered_ && line.bar_done >= number;
      record.take({LogRole::global_step, is_numbered_ ? "the progress bar" : "the count of entries",
                   static_cast<double>(number)});
    }
    record.is_filtered = is_object || has_rate;
    hand_over(record, sink);
    return true;
  }

  static bool has_member(std::string_view text, std::string_view name) {
    return text.find(name) != std::string_view::npos;
  }

  void hand_over(LogRecord record, const SkipLogSink& sink) {
    record.fields[static_cast<std::size_t>(LogRole::epoch)].reset();
    if (!record.has_step()) return;
    record.is_numbered = is_numbered_;
    steps_.hand_over(record, sink);
    dictionaries_ = std::max(dictionaries_ + 1, steps_.last());
  }

  LogNames names_;
  std::vector<LogField> fields_;
  LogRecordSteps steps_{"hf_trainer"};
  LogRecord entry_;
  bool in_history_ = false;  ///< within the history of trainer_state.json
  bool is_numbered_ = true;  ///< by steps, not by dictionaries
  std::int64_t dictionaries_ = 0;
};

}  // namespace

LogLineReader read_hf_trainer(const LogColumns& columns) {
  return [log = TrainerLog(columns)](const LogText& line, const SkipLogSink& sink) mutable {
    return log.line(line, sink);
  };
}

}  // namespace halfscope
