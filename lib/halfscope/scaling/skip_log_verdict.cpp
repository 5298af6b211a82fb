// Tells the kinds of trouble apart by where the skipped steps lie, and at which scales.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <vector>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/skip_log.hpp>

namespace halfscope {
namespace {

std::string power(double scale) {
  const double log2 = std::log2(scale);
  return log2 == std::floor(log2) ? fmt::format("2^{:g}", log2) : fmt::format("{:g}", scale);
}

std::string count_of_steps(std::int64_t count) {
  return fmt::format("{} step{}", count, count == 1 ? "" : "s");
}

/// "3 steps"; "1 to 3 steps" where the scale fell further than those that are seen can lower it.
std::string count_of_skips(std::span<const LoggedStep> skips) {
  std::int64_t hidden = 0;
  for (const LoggedStep& skip : skips) hidden += skip.hidden;
  if (hidden == 0) return count_of_steps(std::ssize(skips));
  return fmt::format("{} to {} steps", skips.size(), std::ssize(skips) + hidden);
}

std::string_view pronoun_of(std::span<const LoggedStep> skips) {
  return skips.size() == 1 && skips.front().hidden == 0 ? "it" : "them";
}

/// The scale below which nothing of a skip is known: half of that at which its last hidden step overflowed.
double scale_below(const LoggedStep& skip) {
  return std::ldexp(skip.scale, -1 - static_cast<int>(skip.hidden));
}

std::vector<LoggedStep> skips_of(const SkipLog& log) {
  std::vector<LoggedStep> skips;
  std::ranges::copy_if(log.steps, std::back_inserter(skips), &LoggedStep::skipped);
  return skips;
}

/// The skips with which the log begins, while the scale falls: others may lie between them, but not more than
/// there were.
std::size_t start_up_skips(const std::vector<LoggedStep>& skips, std::int64_t first_step) {
  std::size_t count = 0;
  double scale = HUGE_VAL;
  for (const LoggedStep& skip : skips) {
    const auto before = skip.step - first_step;
    if (skip.scale > scale || before > 2 * static_cast<std::int64_t>(count) + 2) break;
    scale = skip.scale;
    ++count;
  }
  return count;
}

bool come_regularly(std::span<const LoggedStep> skips) {
  if (skips.size() < 3) return false;
  std::int64_t least = skips[1].step - skips[0].step, most = least;
  for (std::size_t i = 2; i < skips.size(); ++i) {
    least = std::min(least, skips[i].step - skips[i - 1].step);
    most = std::max(most, skips[i].step - skips[i - 1].step);
  }
  return least > 1 && most <= 2 * least;
}

/// A run that ended at a minimum above 1, below which its log tells of nothing.
std::string say_minimum(double scale) {
  return fmt::format(
      "The run ended at the scaler's minimum, {}, where the step overflows as well: a smaller minimum shows "
      "whether a scale cures it (DeepSpeed: min_loss_scale).",
      power(scale));
}

std::string say_incurable(const SkipLog& log, const std::vector<LoggedStep>& skips) {
  const auto at_one = std::ranges::count_if(skips, [](const LoggedStep& step) { return step.scale <= 1; });
  const bool all = std::ssize(skips) == log.step_count() || !log.counts_steps;
  std::string text =
      at_one == 0 ? say_minimum(skips.back().scale)
                  : fmt::format(
                        "No loss scale cures this: {} overflow{} at a scale of 1 or less, so that max|g| is "
                        "65520 or more "
                        "there or a NaN comes from the forward pass; a smaller scale only flushes more. "
                        "halfscope.torch.emulate(...).first_overflow finds the layer.",
                        count_of_steps(at_one), at_one == 1 ? "s" : "");
  if (all && skips.size() > 1)
    text +=
        fmt::format(" All {} of the log overflow, none was an update.", count_of_steps(std::ssize(skips)));
  return text;
}

std::string say_late_skips(std::span<const LoggedStep> late) {
  const double sparing = scale_below(std::ranges::min(late, {}, scale_below));
  return fmt::format("{} skipped later{}; a largest scale of {} would spare {} (max_scale).",
                     count_of_skips(late),
                     come_regularly(late) ? ", regularly, each after the scale has grown" : "",
                     power(sparing), pronoun_of(late));
}

std::string say_holes(const SkipLog& log) {
  if (log.skipped_in_holes == 0) return "";
  return fmt::format(" At least {} were skipped in holes of the log, where the scale fell.",
                     count_of_steps(log.skipped_in_holes));
}

std::string say_skips(const SkipLog& log) {
  const std::vector<LoggedStep> skips = skips_of(log);
  if (skips.empty() && log.skipped_in_holes > 0) return "";
  if (skips.empty())
    return log.unknown_steps > 0 ? "No step that the log tells of was skipped." : "No step was skipped.";
  const bool incurable =
      log.ended || std::ranges::any_of(skips, [](const LoggedStep& step) { return step.scale <= 1; });
  if (incurable) return say_incurable(log, skips);
  if (skips.size() == log.steps.size()) {
    const std::string which =
        skips.size() == 1 && log.hidden_skips == 0
            ? "The one step that the log tells of was skipped, at"
            : fmt::format("All {} that the log tells of were skipped, down to", count_of_skips(skips));
    return fmt::format("{} a scale of {}; it ends before one was not.", which, power(skips.back().scale));
  }
  const std::size_t early = start_up_skips(skips, log.steps.front().step);
  std::string text;
  if (early > 0) {
    const auto first = std::span(skips).first(early);
    text = fmt::format(
        "{} skipped at the start, while the scale fell from {} to {}: harmless; "
        "an initial scale of {} spares {}.",
        count_of_skips(first), power(first.front().scale), power(scale_below(first.back())),
        power(scale_below(first.back())), pronoun_of(first));
  }
  if (early == skips.size()) return text;
  return text + (text.empty() ? "" : " ") + say_late_skips(std::span(skips).subspan(early));
}

/// A line for several steps does not tell which of them was lost first.
std::string say_lost(const SkipLog& log) {
  const auto lost = std::ranges::find_if(log.steps, &LoggedStep::lost);
  const auto tells_nothing = [](const LoggedStep& step) {
    return step.low == 0 && !step.skipped && !step.grad_norm;
  };
  const bool is_open = lost != log.steps.begin() && tells_nothing(*std::prev(lost));
  const std::string steps = is_open
                                ? fmt::format("one of the steps {} to {}", std::prev(lost)->step, lost->step)
                                : fmt::format("step {}", lost->step);
  return fmt::format(
      " Weights are lost from {} on: the gradients were not finite and the step was not skipped. Restart "
      "from "
      "before it.",
      steps);
}

}  // namespace

std::optional<std::int64_t> SkipLog::lost_from() const {
  const auto lost = std::ranges::find_if(steps, &LoggedStep::lost);
  return lost == steps.end() ? std::nullopt : std::optional(lost->step);
}

std::string_view title_of(const SkipLog& log) {
  return std::ranges::find(log_formats, log.format, &LogFormat::name)->title;
}

std::string verdict_of(const SkipLog& log) {
  std::string text = log.has_scaler
                         ? say_skips(log) + say_holes(log)
                         : "No loss scaler in this log: the scale is 1 throughout, or none is printed.";
  if (log.lost_from()) text += say_lost(log);
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

}  // namespace halfscope
