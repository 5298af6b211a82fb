// Lines as whoever prints a step and a scale may write them: colours, thousands, changes, indented objects.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/support/random_run.hpp"

namespace halfscope {
namespace named_log_printers_of_tests {
namespace {

using Lines = std::vector<std::string>;

std::string decimal(double scale) {
  return scale == std::floor(scale) ? fmt::format("{:.1f}", scale) : fmt::format("{}", scale);
}

/// "65,536.0".
std::string in_thousands(double scale) {
  std::string text = decimal(scale);
  for (std::size_t at = text.find('.'); at > 3 && at != std::string::npos; at -= 3)
    text.insert(at - 3, 1, ',');
  return text;
}

void coloured(const PrintedStep& at, Lines& lines) {
  if (at.has_line())
    lines.push_back(
        fmt::format("\x1b[2m10:00:00\x1b[0m \x1b[36mstep\x1b[0m=\x1b[1;35m{}\x1b[0m "
                    "\x1b[36mloss_scale\x1b[0m=\x1b[1;35m{}\x1b[0m \x1b[36mlr\x1b[0m=0.1",
                    at.counters.step, decimal(at.step.next)));
}

void thousands(const PrintedStep& at, Lines& lines) {
  if (at.has_line())
    lines.push_back(
        fmt::format("Step {} | loss scale {} | loss 2.5", at.counters.step, in_thousands(at.step.next)));
}

/// A table with a comma for a point.
void semicolons(const PrintedStep& at, Lines& lines) {
  if (lines.empty() && at.counters.step == 1) lines.emplace_back("step;lr;loss_scale");
  std::string scale = decimal(at.step.next);
  std::ranges::replace(scale, '.', ',');
  if (at.has_line()) lines.push_back(fmt::format("{};0,001;{}", at.counters.step, scale));
}

void changes(const PrintedStep& at, Lines& lines) {
  if (!at.has_line()) return;
  const std::string next = decimal(at.step.next);
  lines.push_back(
      at.step.next == at.step.scale
          ? fmt::format("step {}: loss scale: {}", at.counters.step, next)
          : fmt::format("step {}: loss scale: {} -> {}", at.counters.step, decimal(at.step.scale), next));
}

void old_and_new(const PrintedStep& at, Lines& lines) {
  if (at.has_line())
    lines.push_back(fmt::format("step={} old_loss_scale={} new_loss_scale={}", at.counters.step,
                                decimal(at.step.scale), decimal(at.step.next)));
}

/// Its names in the order of the alphabet, as json.dumps(indent=2, sort_keys=True) has them.
void indented(const PrintedStep& at, Lines& lines) {
  if (!at.has_line()) return;
  for (const std::string& line :
       {std::string("{"), std::string("  \"amp\": {"),
        fmt::format("    \"loss_scale\": {}", decimal(at.step.next)), std::string("  },"),
        std::string("  \"eval\": {"), std::string("    \"loss\": NaN"), std::string("  },"),
        fmt::format("  \"step\": {}", at.counters.step), std::string("}")})
    lines.push_back(line);
}

/// Python's pprint of a dictionary.
void pretty_printed(const PrintedStep& at, Lines& lines) {
  if (!at.has_line()) return;
  lines.push_back(fmt::format("{{'loss_scale': {},", decimal(at.step.next)));
  lines.emplace_back(" 'lr': 0.1,");
  lines.push_back(fmt::format(" 'step': {}}}", at.counters.step));
}

/// Whether the step overflowed, and the scale behind it.
void flags(const PrintedStep& at, Lines& lines) {
  if (at.has_line())
    lines.push_back(fmt::format("step={} found_inf={:.1f} loss_scale={}", at.counters.step,
                                at.step.skipped ? 1.0 : 0.0, decimal(at.step.next)));
}

constexpr LogPrinter of_scales(std::string_view name, void (*print)(const PrintedStep&, Lines&)) {
  return {.name = name, .print = print, .tells_end = false, .scales_alone = true};
}
constexpr std::array printers{
    of_scales("coloured", coloured),
    of_scales("thousands", thousands),
    of_scales("semicolons", semicolons),
    of_scales("changes", changes),
    of_scales("old_and_new", old_and_new),
    of_scales("indented", indented),
    of_scales("pretty_printed", pretty_printed),
    of_scales("flags", flags),
};

}  // namespace
}  // namespace named_log_printers_of_tests

std::span<const LogPrinter> named_log_printers() {
  return named_log_printers_of_tests::printers;
}

}  // namespace halfscope
