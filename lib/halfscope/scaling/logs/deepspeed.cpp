// DeepSpeed's lines: skipped steps, and counted ones.
#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

constexpr std::string_view attempted = "Attempted loss scale:";

/// The number after the last "Rank " of what stands before an overflow.
std::optional<std::int64_t> rank_before(std::string_view text) {
  constexpr std::string_view word = "Rank ";
  const std::size_t at = text.rfind(word);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + word.size());
  return take_log_number<std::int64_t>(text);
}

/// Overflows and bars, in the order in which they stand: a process that prints both joins them in one line.
void find_overflows(std::string_view text, const SkipLogSink& sink) {
  for (std::size_t at = text.find(attempted); at != std::string_view::npos; at = text.find(attempted)) {
    const std::string_view before = text.substr(0, at);
    find_progress_bars(before, sink);
    text.remove_prefix(at + attempted.size());
    if (before.find("Skipping step") == std::string_view::npos) continue;
    const auto rank = rank_before(before);
    const std::optional<double> scale = take_log_number<double>(text);
    if (rank.value_or(0) != 0) continue;
    reject_scale(scale, sink);
    if (!is_scale(scale)) continue;
    OverflowLine line{.scale = *scale, .next = std::nullopt, .has_rank = rank.has_value()};
    if (take_word(text, ", reducing to")) {
      line.next = take_log_number<double>(text);
      const bool is_usual = line.next == *scale || line.next == *scale / 2;
      if (!is_scale(line.next) || !(is_usual || ends_number(text))) continue;
    } else if (!take_word(text, ", but hysteresis is")) {
      continue;  // cut
    }
    sink.overflow(line);
  }
  find_progress_bars(text, sink);
}

void find_steps(std::string_view text, const SkipLogSink& sink) {
  constexpr std::string_view label = "step=";
  for (std::size_t at = text.find(label); at != std::string_view::npos; at = text.find(label)) {
    text.remove_prefix(at + label.size());
    const auto step = take_log_number<std::int64_t>(text);
    if (!is_count(step) || !take_word(text, ", skipped=")) continue;
    const auto skipped = take_log_number<std::int64_t>(text);
    if (is_count(skipped) && *skipped <= *step) sink.step({*step, *skipped});
  }
}

}  // namespace

LogLineReader read_deepspeed(const LogColumns& /*columns*/) {
  return [](const LogText& line, const SkipLogSink& sink) {
    find_overflows(line.text, sink);
    find_steps(line.text, sink);
    return false;
  };
}

}  // namespace halfscope
