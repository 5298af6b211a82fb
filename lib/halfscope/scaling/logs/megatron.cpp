// Megatron-LM's lines: the state after an iteration.
#include <algorithm>
#include <cmath>
#include <utility>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

/// The fields of an iteration, from behind its number on.
void read_iteration(std::int64_t iteration, std::string_view fields, const SkipLogSink& sink) {
  constexpr std::string_view label = "loss scale:";
  constexpr std::int64_t most_skipped = 1'000'000;  // among the steps between two lines
  IterationLine line{.iteration = iteration, .has_own_norm = true};
  line.scale = number_after<double>(fields, label);
  const bool is_printed = fields.find(label) != std::string_view::npos;
  // Without a scaler Megatron-DeepSpeed prints -1.0 or nothing. Below a half the one decimal tells no scale.
  const bool is_rounded = fields.find("loss scale: 0.0") != std::string_view::npos ||
                          (line.scale && *line.scale > 0 && *line.scale < 0.5);
  if (line.scale == -1.0 || is_rounded)
    line.scale.reset();
  else if (line.scale && !is_scale(line.scale))
    line.bad_scale = std::exchange(line.scale, std::nullopt);
  else if (!line.scale && is_printed)
    return;  // cut
  line.skipped = number_after<std::int64_t>(fields, "number of skipped iterations:");
  if (!is_count(line.skipped) || *line.skipped > std::min(iteration, most_skipped)) return;
  line.not_finite = number_after<std::int64_t>(fields, "number of nan iterations:").value_or(0);
  line.grad_norm = norm_of(number_after<double>(fields, "grad norm:"));
  // A finite one leaves out the iterations whose loss is not finite.
  const auto loss = loss_of(number_after<double>(fields, "lm loss:"));
  if (loss && std::isnan(*loss)) line.loss = loss;
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

LogLineReader read_megatron(const LogColumns& /*columns*/) {
  return [](const LogText& line, const SkipLogSink& sink) {
    find_iterations(line.text, sink);
    const auto has = [&](std::string_view sign) { return line.text.find(sign) != std::string_view::npos; };
    return has("loss scale:") && has("iteration ") && has(" | ");
  };
}

}  // namespace halfscope
