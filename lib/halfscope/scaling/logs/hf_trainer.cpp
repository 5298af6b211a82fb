// Hugging Face's Trainer: the history in trainer_state.json, and the dictionaries that it prints.
#include <algorithm>
#include <utility>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_members.hpp>

namespace halfscope {
namespace {

class TrainerLog {
 public:
  void line(LogText line, const SkipLogSink& sink) {
    if (const std::size_t at = line.text.find(history_key); at != std::string_view::npos) {
      in_history_ = true;
      line.text.remove_prefix(at + history_key.size());
    }
    if (in_history_) return entries(line.text, sink);
    dictionary(line, sink);
  }

 private:
  /// trainer_state.json has a member on each line, or all of it on one; an entry of its history ends with a
  /// brace.
  void entries(std::string_view text, const SkipLogSink& sink) {
    for (std::size_t end = text.find('}'); end != std::string_view::npos; end = text.find('}')) {
      members(text.substr(0, end));
      end_entry(sink);
      text.remove_prefix(end + 1);
    }
    members(text);
  }

  void members(std::string_view text) {
    if (const auto step = member<std::int64_t>(text, "step"); is_count(step)) step_ = step;
    if (const auto scale = scale_member(text)) scale_ = scale;
    if (const auto norm = norm_member(text)) norm_ = norm;
  }

  void end_entry(const SkipLogSink& sink) {
    const auto step = std::exchange(step_, std::nullopt);
    IterationLine line{.iteration = step.value_or(0), .format = "hf_trainer"};
    line.scale = std::exchange(scale_, std::nullopt);
    line.grad_norm = std::exchange(norm_, std::nullopt);
    if (step && (line.scale || line.grad_norm)) sink.iteration(line);
  }

  /// "{'loss': 2.04, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.28}", which has no step: the
  /// progress bar numbers it.
  void dictionary(const LogText& line, const SkipLogSink& sink) {
    const std::size_t begin = line.text.find("{'");
    if (begin == std::string_view::npos) return;
    const auto norm = norm_member(line.text.substr(begin));
    if (!norm) return;
    dictionaries_ = std::max(dictionaries_ + 1, line.bar_done);
    sink.iteration({.iteration = dictionaries_, .grad_norm = norm, .format = "hf_trainer"});
  }

  bool in_history_ = false;  ///< within the history of trainer_state.json
  std::optional<std::int64_t> step_;
  std::optional<double> scale_, norm_;
  std::int64_t dictionaries_ = 0;
};

}  // namespace

LogLineReader read_hf_trainer() {
  return [log = TrainerLog()](const LogText& line, const SkipLogSink& sink) mutable { log.line(line, sink); };
}

}  // namespace halfscope
