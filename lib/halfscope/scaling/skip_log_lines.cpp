// Finds what logs tell of loss scales among everything else that is printed.
#include <halfscope/scaling/detail/skip_log_lines.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

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

void find_progress(std::string_view text, const SkipLogSink& sink) {
  for (std::size_t at = text.find("| "); at != std::string_view::npos; at = text.find("| ")) {
    text.remove_prefix(at + 2);
    std::string_view rest = text;
    const auto done = take_log_number<std::int64_t>(rest);
    if (!is_count(done) || !rest.starts_with('/')) continue;
    rest.remove_prefix(1);
    const auto total = take_log_number<std::int64_t>(rest);
    if (is_count(total) && *done <= *total && take_word(rest, "[")) sink.progress({*done, *total});
  }
}

/// Overflows and bars, in the order in which they stand: a process that prints both joins them in one line.
void find_overflows(std::string_view text, const SkipLogSink& sink) {
  for (std::size_t at = text.find(attempted); at != std::string_view::npos; at = text.find(attempted)) {
    const std::string_view before = text.substr(0, at);
    find_progress(before, sink);
    text.remove_prefix(at + attempted.size());
    if (before.find("Skipping step") == std::string_view::npos) continue;
    const auto rank = rank_before(before);
    const std::optional<double> scale = take_log_number<double>(text);
    if (!is_scale(scale) || rank.value_or(0) != 0) continue;
    OverflowLine line{.scale = *scale, .next = std::nullopt, .has_rank = rank.has_value()};
    if (take_word(text, ", reducing to")) {
      line.next = take_log_number<double>(text);
      if (!is_scale(line.next)) continue;
    }
    sink.overflow(line);
  }
  find_progress(text, sink);
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

/// The fields of an iteration, from behind its number on.
void read_iteration(std::int64_t iteration, std::string_view fields, const SkipLogSink& sink) {
  constexpr std::string_view label = "loss scale:";
  constexpr std::int64_t most_skipped = 1'000'000;  // among the steps between two lines
  IterationLine line{.iteration = iteration};
  line.scale = number_after<double>(fields, label);
  const bool is_printed = fields.find(label) != std::string_view::npos;
  // Without a scaler Megatron-DeepSpeed prints -1.0 or nothing. Below a half the one decimal tells no scale.
  const bool is_rounded = fields.find("loss scale: 0.0") != std::string_view::npos ||
                          (line.scale && *line.scale > 0 && *line.scale < 0.5);
  if (line.scale == -1.0 || is_rounded)
    line.scale.reset();
  else if (line.scale ? !is_scale(line.scale) : is_printed)
    return;
  line.skipped = number_after<std::int64_t>(fields, "number of skipped iterations:");
  if (!is_count(line.skipped) || *line.skipped > std::min(iteration, most_skipped)) return;
  line.not_finite = number_after<std::int64_t>(fields, "number of nan iterations:").value_or(0);
  line.grad_norm = norm_of(number_after<double>(fields, "grad norm:"));
  sink.iteration(line);
}

/// "iteration 10/ 1000 |".
struct IterationStart {
  std::int64_t iteration;
  std::size_t begin, end;  ///< places in the text
};

std::optional<IterationStart> next_iteration(std::string_view text, std::size_t from) {
  constexpr std::string_view label = "iteration ";
  for (std::size_t at = text.find(label, from); at != std::string_view::npos; at = text.find(label, at + 1)) {
    std::string_view rest = text.substr(at + label.size());
    const auto number = take_log_number<std::int64_t>(rest);
    if (is_count(number) && take_word(rest, "/") && take_log_number<std::int64_t>(rest) &&
        take_word(rest, "|"))
      return IterationStart{*number, at, text.size() - rest.size()};
  }
  return std::nullopt;
}

void find_iterations(std::string_view text, const SkipLogSink& sink) {
  for (auto start = next_iteration(text, 0); start;) {
    const auto next = next_iteration(text, start->end);
    const std::size_t end = next ? next->begin : text.size();
    read_iteration(start->iteration, text.substr(start->end, end - start->end), sink);
    start = next;
  }
}

}  // namespace

void find_in_log_line(std::string_view line, const SkipLogSink& sink) {
  while (!line.empty()) {
    const std::size_t end = std::min(line.find('\r'), line.size());
    const std::string_view text = line.substr(0, end);
    find_overflows(text, sink);
    find_other_overflows(text, sink);
    find_steps(text, sink);
    find_iterations(text, sink);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
}

}  // namespace halfscope
