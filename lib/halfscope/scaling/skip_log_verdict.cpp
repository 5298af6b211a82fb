// Tells the kinds of trouble apart by where the skipped steps lie, and at which scales.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <vector>

#include <halfscope/core/escape.hpp>
#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/skip_log_words.hpp>
#include <halfscope/scaling/skip_log.hpp>

namespace halfscope {
namespace {

/// "3 steps"; "1 to 3 steps" where the scale fell further than those that are seen can lower it; "at least 3"
/// where lines leave steps open; "up to 3" where a restart may have taken them again.
std::string count_of_skips(const SkipLog& log, std::span<const LoggedStep> skips) {
  std::int64_t hidden = 0;
  for (const LoggedStep& skip : skips) hidden += skip.hidden;
  if (log.restart) return "up to " + count_of_steps(std::ssize(skips) + hidden);
  if (log.open_steps + log.again > 0) return "at least " + count_of_steps(std::ssize(skips));
  if (hidden == 0) return count_of_steps(std::ssize(skips));
  return fmt::format("{} to {} steps", skips.size(), std::ssize(skips) + hidden);
}

std::string capital(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z')
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

std::string_view pronoun_of(std::span<const LoggedStep> skips) {
  return skips.size() == 1 && skips.front().hidden == 0 ? "it" : "them";
}

/// The scale that a skip leaves, as a later line has it; half of its own where none has.
double scale_behind(const SkipLog& log, const LoggedStep& skip) {
  const auto next = std::ranges::upper_bound(log.steps, skip.step, {}, &LoggedStep::step);
  if (next != log.steps.end() && !next->after_hole && log.counts_steps) return next->scale;
  if (next == log.steps.end() && log.next_scale) return *log.next_scale;
  return std::ldexp(skip.scale, -1 - static_cast<int>(skip.hidden));
}

/// The skipped steps of whose scale the log tells something.
std::vector<LoggedStep> skips_of(const SkipLog& log) {
  std::vector<LoggedStep> skips;
  std::ranges::copy_if(log.steps, std::back_inserter(skips),
                       [](const LoggedStep& step) { return step.skipped && std::isfinite(step.high); });
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
      scale_text(scale));
}

/// Lines of skipped steps alone.
std::string say_uncounted(const std::vector<LoggedStep>& skips) {
  const auto [least, most] = std::ranges::minmax(skips, {}, &LoggedStep::scale);
  return fmt::format(
      " {} skipped, at {}; no line counts steps, so that those between and behind them are not known.",
      count_of_steps(std::ssize(skips)),
      least.scale == most.scale
          ? fmt::format("a scale of {}", scale_text(most.scale))
          : fmt::format("scales from {} to {}", scale_text(most.scale), scale_text(least.scale)));
}

std::string say_incurable(const SkipLog& log, const std::vector<LoggedStep>& skips) {
  const auto at_one = std::ranges::count_if(skips, [](const LoggedStep& step) { return step.scale <= 1; });
  const bool all = std::ssize(skips) == log.step_count() && log.counts_steps;
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
  if (!log.counts_steps) text += say_uncounted(skips);
  return text;
}

/// Skips at a scale that stayed where it was.
std::string say_no_fall(const SkipLog& log, std::span<const LoggedStep> skips) {
  return fmt::format(
      "{} skipped at a scale of {}, which stayed there: it is constant, or hysteresis held it. Give a "
      "smaller "
      "scale; below this one the log does not tell whether they overflow.",
      capital(count_of_skips(log, skips)), scale_text(skips.front().scale));
}

bool falls_at_all(const SkipLog& log, std::span<const LoggedStep> skips) {
  return std::ranges::any_of(
      skips, [&](const LoggedStep& skip) { return scale_behind(log, skip) < skip.scale || skip.hidden > 0; });
}

/// Skips that go on to the end of the log, where no later step shows a scale at which it was taken.
std::string say_last_skips(const SkipLog& log) {
  const std::string from = fmt::format("From step {} on no loss or norm is finite", *log.bad_from);
  if (!log.bad_at) return from + "; the log ends before one is.";
  if (*log.bad_at > 1)
    return fmt::format("{}, down to a scale of {}; the log ends before one is.", from,
                       scale_text(*log.bad_at));
  return fmt::format(
      "{}, at a scale of {} either: no loss scale cures this. max|g| is 65520 or more there, a NaN comes "
      "from "
      "the forward pass, or the weights are lost; halfscope.torch.emulate(...).first_overflow finds the "
      "layer.",
      from, scale_text(*log.bad_at));
}

std::string say_late_skips(const SkipLog& log, std::span<const LoggedStep> late) {
  if (!falls_at_all(log, late)) return say_no_fall(log, late);
  if (log.bad_from && *log.bad_from <= late.front().step) return say_last_skips(log);
  double sparing = HUGE_VAL;
  for (const LoggedStep& skip : late) sparing = std::min(sparing, scale_behind(log, skip));
  return fmt::format("{} skipped later{}; a largest scale of {} would spare {} (max_scale).",
                     capital(count_of_skips(log, late)),
                     come_regularly(late) ? ", regularly, each after the scale has grown" : "",
                     scale_text(sparing), pronoun_of(late));
}

std::string say_early_skips(const SkipLog& log, std::span<const LoggedStep> early) {
  if (!falls_at_all(log, early)) {
    const bool is_inferred = early.back().high > early.back().scale;
    if (!is_inferred) return say_no_fall(log, early);
    return fmt::format("{} skipped at the start, before a scale of {} held: harmless.",
                       capital(count_of_skips(log, early)), scale_text(scale_behind(log, early.back())));
  }
  const std::string after = scale_text(scale_behind(log, early.back()));
  return fmt::format(
      "{} skipped at the start, while the scale fell from {} to {}: harmless; "
      "an initial scale of {} spares {}.",
      capital(count_of_skips(log, early)), scale_text(early.front().scale), after, after, pronoun_of(early));
}

std::string say_holes(const SkipLog& log) {
  if (log.skipped_in_holes == 0) return "";
  return fmt::format(" At least {} were skipped in holes of the log, where the scale fell.",
                     count_of_steps(log.skipped_in_holes));
}

std::string say_no_skip(const SkipLog& log) {
  if (log.told_in_words > 0)
    return fmt::format("No line that was read tells of a skipped step, and {} may, in words.",
                       log.told_in_words == 1 ? "one other" : fmt::format("{} others", log.told_in_words));
  if (log.open_steps > 0 || log.uneven) return "No line tells of a skipped step.";
  if (log.unknown_steps > 0) return "No step that the log tells of was skipped.";
  if (log.counts_skips) return "No step was skipped.";
  const std::string fall = log.seam_line
                               ? fmt::format("The scale fell at a restart alone (line {})", *log.seam_line)
                               : "The scale never fell";
  const std::string but =
      log.unseen_steps == 0 ? ""
      : log.unseen_steps == 1
          ? " but perhaps the first"
          : fmt::format(" but perhaps {}, whose scale no line before it tells,", log.unseen_steps);
  return fmt::format("{}: no step{} was skipped by a scaler that lowers it at each skip, as PyTorch's does.",
                     fall, but);
}

std::string say_skips(const SkipLog& log) {
  const std::vector<LoggedStep> skips = skips_of(log);
  if (skips.empty() && log.skipped > 0)
    return fmt::format("{}{} skipped, at a scale that the log does not tell.",
                       log.open_steps > 0 ? "At least " : "", count_of_steps(log.skipped));
  if (skips.empty()) return log.skipped_in_holes > 0 ? "" : say_no_skip(log);
  const bool incurable =
      log.ended || std::ranges::any_of(skips, [](const LoggedStep& step) { return step.scale <= 1; });
  if (incurable) return say_incurable(log, skips);
  if (!log.counts_steps) return say_uncounted(skips);
  if (skips.size() == log.steps.size()) {
    const std::string which = skips.size() == 1 && log.hidden_skips == 0
                                  ? "The one step that the log tells of was skipped, at"
                                  : fmt::format("All {} that the log tells of were skipped, down to",
                                                count_of_steps(std::ssize(skips)));
    return fmt::format("{} a scale of {}; it ends before one was not.", which,
                       scale_text(skips.back().scale));
  }
  if (log.bad_from && *log.bad_from <= skips.front().step) return say_last_skips(log);
  const std::size_t early = start_up_skips(skips, log.steps.front().step);
  std::string text;
  if (early > 0) text = say_early_skips(log, std::span(skips).first(early));
  if (early == skips.size()) return text;
  return text + (text.empty() ? "" : " ") + say_late_skips(log, std::span(skips).subspan(early));
}

/// Lines that stand for several steps, without a counter.
std::string say_open(const SkipLog& log) {
  if (log.open_steps == 0) return "";
  std::string text =
      log.interval > 1
          ? fmt::format(
                " No line counts skips, and one stands for up to {}: a scale that grows and falls again "
                "between two lines leaves no trace.",
                count_of_steps(log.interval))
      : log.uneven ? std::string()
                   : std::string(" A scale at its floor does not tell whether a step was skipped.");
  return text + say_bounds(log) + " Print the scale at each step, or count the skipped ones.";
}

std::string say_no_scaler(const SkipLog& log) {
  if (log.bad_scale_line) return "No loss scale was read.";
  if (log.other_scale.empty())
    return "No loss scaler in this log: the scale is 1 throughout, or none is printed. A scaler at its "
           "smallest scale would print the same.";
  if (log.is_other_unreadable)
    return fmt::format("No loss scale was read: no number stands behind '{}' in line {}.",
                       escaped(log.other_scale), log.other_scale_line);
  return fmt::format(
      "No loss scale was read: '{0}' may be one (line {1}); --columns loss_scale={0} reads it.",
      escaped(log.other_scale), log.other_scale_line);
}

std::string say_lines(const SkipLog& log) {
  if (log.lines.first == 0) return "";
  return fmt::format(" Read from {}.", in_lines(log.lines));
}

}  // namespace

std::optional<std::int64_t> SkipLog::lost_from() const {
  const auto first = std::ranges::find_if(steps, &LoggedStep::lost);
  return first == steps.end() ? std::nullopt : std::optional(first->step);
}

std::string_view title_of(const SkipLog& log) {
  return std::ranges::find(log_formats, log.format, &LogFormat::name)->title;
}

std::string verdict_of(const SkipLog& log) {
  std::string text = log.has_scaler ? say_skips(log) + say_unseen(log) + say_holes(log) + say_open(log) +
                                          say_uneven(log) + say_restart(log)
                                    : say_no_scaler(log);
  text += say_only_scale(log) + say_bad_scale(log) + say_disproved(log) + say_lost(log) + say_ends(log) +
          say_lines(log);
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

}  // namespace halfscope
