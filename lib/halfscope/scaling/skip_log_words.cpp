// Words of the verdict, and its sentences on losses, exceptions and scales that are none.
#include <halfscope/scaling/detail/skip_log_words.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/core/escape.hpp>

namespace halfscope {
namespace {

std::string_view word_of_steps(const SkipLog& log) {
  return log.numbers_steps ? "step" : "printed entry";
}

std::string say_stopped(const SkipLog& log) {
  if (!log.stopped_line) return "";
  return fmt::format(
      " The run stopped at a loss or a gradient that is not finite (line {}), after {} {}: no loss scale "
      "cures a "
      "NaN of the forward pass. Restart from before it.",
      *log.stopped_line, word_of_steps(log), log.steps.back().step);
}

std::string say_minimum_line(const SkipLog& log) {
  if (!log.minimum_line) return "";
  return fmt::format(" The run ended since its loss scale could not fall further (line {}).",
                     *log.minimum_line);
}

}  // namespace

std::string scale_text(double scale) {
  const double log2 = std::log2(scale);
  return log2 == std::floor(log2) ? fmt::format("2^{:g}", log2) : fmt::format("{:g}", scale);
}

std::string count_of_steps(std::int64_t count) {
  return fmt::format("{} step{}", count, count == 1 ? "" : "s");
}

std::string in_lines(const LogLines& lines) {
  if (lines.first == lines.last) return fmt::format("line {}", lines.first);
  return fmt::format("lines {} to {}", lines.first, lines.last);
}

std::string say_bounds(const SkipLog& log) {
  std::string text = fmt::format(" Skipped in all: at least {}", log.least_skipped());
  if (log.most_by_rule)
    text += fmt::format("; at most {} by PyTorch's scaler with its defaults",
                        std::max(*log.most_by_rule, log.least_skipped()));
  const auto most = log.most_skipped();
  if (!most) return text + ".";
  // A count from 0 on leaves open whether its first step was one.
  return text +
         fmt::format("; at most {} of {} by any.", *most, count_of_steps(std::max(log.step_count(), *most)));
}

std::string say_disproved(const SkipLog& log) {
  if (!log.disproved) return "";
  const DisprovedLosses& found = *log.disproved;
  const std::string lines = found.count == 1
                                ? in_lines({found.lines.first, found.lines.first})
                                : fmt::format("{} lines ({})", found.count, in_lines(found.lines));
  return fmt::format(
      " The norm or loss of {} is not finite{}, and the {} of line {} is: no weight is lost up to there. {}",
      lines, found.has_means ? ", a mean over several steps of which one suffices" : "",
      found.by_loss ? "loss" : "norm", found.disproof,
      log.has_scaler
          ? std::string("The scaler skipped the step.")
          : "A scaler that the log does not show skipped the step: harmless; log its scale to see it." +
                (log.open_steps > 0 ? say_bounds(log) : std::string()));
}

std::string say_lost(const SkipLog& log) {
  if (!log.lost) return "";
  const LostWeights& lost = *log.lost;
  const std::string_view word = word_of_steps(log);
  const std::string from = lost.earliest < lost.latest
                               ? fmt::format("one of the {}s {} to {}", word, lost.earliest, lost.latest)
                               : fmt::format("{} {}", word, lost.latest);
  const bool ends_alone = log.disproved && log.disproved->disproof == lost.lines.first;
  const std::string_view unless = lost.is_counted ? ""
                                  : ends_alone    ? ", unless it was skipped as those before it"
                                               : ", unless a scaler that the log does not show skipped every "
                                                 "one of these steps";
  std::string text = fmt::format(" Weights are lost from {} on{}: ", from, unless);
  text += lost.by_loss
              ? fmt::format("the loss is not finite in {}, to the end", in_lines(lost.lines))
              : fmt::format("the gradients were not finite and the step was not skipped ({}, to the end)",
                            in_lines(lost.lines));
  if (lost.is_filtered)
    text +=
        "; a loss of 0.0 is what the Trainer prints where none of its window was finite "
        "(logging_nan_inf_filter=False shows it), if not all labels are masked";
  else if (lost.by_loss)
    text += "; if it is a sum or a running mean, one step suffices, and the norm tells";
  if (lost.by_share)
    text += fmt::format("; by the share of the line before, from step {} if losses stayed as they were",
                        *lost.by_share);
  return text + ". Restart from before it.";
}

std::string say_bad_scale(const SkipLog& log) {
  if (!log.bad_scale_line) return "";
  const std::string_view why = !log.has_scaler     ? "such a scale is none"
                               : log.bad_scale > 0 ? "it grew without an end; give the scaler a max_scale"
                               : log.bad_scale == 0
                                   ? "it was halved until nothing was left: every step overflows"
                                   : "such a scale is none";
  return fmt::format(" The loss scale is {:g} in line {}: {}.", log.bad_scale, *log.bad_scale_line, why);
}

std::string say_uneven(const SkipLog& log) {
  if (!log.uneven) return "";
  const UnevenScales& found = *log.uneven;
  std::string why;
  switch (found.kind) {
    case UnevenScales::Kind::different_factors:
      why = fmt::format(
          "changes by different factors, {:.3g} in line {} and {:.3g} in line {}: it is a mean, "
          "or follows the gradients, and",
          found.first, found.lines.first, found.last, found.lines.last);
      break;
    case UnevenScales::Kind::one_factor:
      why = fmt::format(
          "falls by a factor of {:.3g} in line {}: a scaler may have that factor, or the scale "
          "is a mean over several steps, and",
          found.first, found.lines.first);
      break;
    case UnevenScales::Kind::quick_rises:
      why = fmt::format(
          "rises within two steps of another change, as in lines {} and {}: it follows the "
          "gradients, or is the scale of something else, and",
          found.lines.first, found.lines.last);
  }
  return fmt::format(" The loss scale {} none of its falls is read as a skip.", why) +
         (log.open_steps > 0 ? std::string() : say_bounds(log)) + " Print scaler.get_scale() at each step.";
}

std::string say_unseen(const SkipLog& log) {
  const bool is_said = log.open_steps > 0 || log.restart || log.uneven;
  if (log.unseen_steps == 0 || log.skipped == 0 || is_said) return "";
  if (log.unseen_steps == 1)
    return " Perhaps one more step was skipped, the first: no line before it tells its scale.";
  return fmt::format(" Perhaps {} more were skipped, whose scale no line before them tells.",
                     count_of_steps(log.unseen_steps));
}

std::string say_only_scale(const SkipLog& log) {
  if (log.only_scale.empty()) return "";
  return fmt::format(" Other loss scales stand beside '{}', and this is the verdict on that one alone.",
                     escaped(log.only_scale));
}

std::string say_restart(const SkipLog& log) {
  if (!log.restart) return "";
  const PossibleRestart& found = *log.restart;
  const std::string most =
      log.most_skipped() ? fmt::format(", at most {}", *log.most_skipped()) : std::string();
  return fmt::format(
      " A restart may lie before line {}: the scale is {} there and {} before, with fewer steps between than "
      "a "
      "growth takes. No line tells which step it went on from, so that steps before it may stand here twice: "
      "at "
      "least {} skipped in all{}.",
      found.line, scale_text(found.after), scale_text(found.before), count_of_steps(found.skipped), most);
}

std::string say_ends(const SkipLog& log) {
  return say_stopped(log) + say_minimum_line(log);
}

}  // namespace halfscope
