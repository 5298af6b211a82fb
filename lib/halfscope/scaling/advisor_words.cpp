// Builds the sentences of the advisor.
#include <halfscope/scaling/detail/advisor_words.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {
namespace {

/// More names than this and the sentence says how many it leaves out.
constexpr std::size_t names_in_a_sentence = 8;

std::string join(const std::vector<std::string>& parts) {
  const std::size_t shown = std::min(parts.size(), names_in_a_sentence);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + parts[i];
  if (shown < parts.size()) text += fmt::format(" and {} more", parts.size() - shown);
  return text;
}

std::string count_of_tensors(std::size_t count) {
  return fmt::format("{} tensor{}", count, count == 1 ? "" : "s");
}

std::string all_tensors(std::size_t count) {
  return count == 1 ? "the tensor" : fmt::format("all {} tensors", count);
}

std::string percent(double share) {
  return fmt::format("{:g} %", 100 * share);
}

/// A line on values that no scale can change; empty where every value is finite.
std::string say_nonfinite(std::span<const TensorFit> tensors) {
  std::vector<std::string> names;
  for (const TensorFit& tensor : tensors) {
    if (tensor.nonfinite > 0) names.push_back(fmt::format("{} ({})", tensor.name, tensor.nonfinite));
  }
  if (names.empty()) return "";
  return fmt::format(
      "\n  Not judged: infinite or NaN values, which are there before any scale: {}. A loss scaler skips a "
      "step with "
      "such gradients; np.histogram needs x[np.isfinite(x)] of them.",
      join(names));
}

/// "Loss scale 2^13", with the call for the format that PyTorch scales for.
std::string scale_to_type(int scale_log2, const FloatFormat& format) {
  const std::string scale = fmt::format("Loss scale 2^{}", scale_log2);
  if (format != fp16) return scale;
  return fmt::format("{}: torch.amp.GradScaler(init_scale=2.0**{})", scale, scale_log2);
}

std::string say_choice(int scale, const ScaleWindow& window, const AdvisorOptions& options) {
  const int headroom = window.high - scale;
  if (scale == options.ceiling_log2 && headroom > options.headroom_log2) {
    return fmt::format("2^{} is the largest offered, since the loss itself is multiplied by it", scale);
  }
  if (headroom == options.headroom_log2) {
    return fmt::format(
        "2^{} is the largest that leaves a factor of 2^{} above the largest value; a large scale costs "
        "nothing as long as nothing overflows",
        scale, headroom);
  }
  if (headroom == 0) return "No room is left above the largest value";
  return headroom < options.headroom_log2
             ? fmt::format("Only a factor of 2^{} is left above the largest value", headroom)
             : fmt::format("2^{} is the smallest that fits", scale);
}

/// Why no scale fits a tensor.
std::string why_none_fits(const TensorFit& fit) {
  if (fit.underflow_low <= fit.overflow_high) {
    return fmt::format("{} (needs 2^{} against underflow, and FP32 ends at 2^{})", fit.name,
                       fit.underflow_low, largest_scale_log2);
  }
  return fmt::format("{} (needs 2^{} against underflow, overflows beyond 2^{})", fit.name, fit.underflow_low,
                     fit.overflow_high);
}

/// The line "give a scale of its own to a (2^3), b (2^5)", and likewise for the other remedies.
std::string say_remedy(Remedy remedy, const Advice& advice) {
  std::vector<std::string> names;
  for (const Outlier& outlier : advice.outliers) {
    if (outlier.remedy != remedy) continue;
    const TensorFit& fit = outlier.tensor;
    names.push_back(remedy == Remedy::own_scale
                        ? fmt::format("{} (2^{}, of 2^{} to 2^{})", fit.name, *outlier.scale_log2,
                                      fit.window()->low, fit.window()->high)
                        : why_none_fits(fit));
  }
  if (names.empty()) return "";
  switch (remedy) {
    case Remedy::own_scale:
      return fmt::format("\n  give a scale of its own to {}", join(names));
    case Remedy::bf16_range:
      return fmt::format("\n  keep in BF16, whose range holds it unscaled, or in FP32: {}", join(names));
    case Remedy::fp32_island:
      break;
  }
  return fmt::format("\n  keep in FP32: {}", join(names));
}

/// The line on how often the rule was right; empty of a rule that was not held against trainings.
std::string say_reliability(const FloatFormat& format, const AdvisorOptions& options) {
  if (format != fp16 || options.tolerance != AdvisorOptions{}.tolerance) return "";
  return fmt::format(
      "\n  Sure: such a scale was right in {} of {} tasks in FP16, and 1024 in {}; in {} of {} with narrower "
      "windows, "
      "1024 in {}",
      judged_in_fp16.right, judged_in_fp16.tasks, judged_in_fp16.right_with_1024,
      judged_in_narrow_windows.right, judged_in_narrow_windows.tasks,
      judged_in_narrow_windows.right_with_1024);
}

}  // namespace

std::string say_scale_fits(std::span<const TensorFit> tensors, const Advice& advice,
                           const FloatFormat& format, const AdvisorOptions& options) {
  const ScaleWindow& window = *advice.joint;
  const int scale = *advice.recommended;
  if (scale < window.low)
    return fmt::format(
        "{}\n  Why: 2^{} alone fits {}, and leaves no room above the largest value. At 2^{} "
        "underflow costs {} more than {} of its sum of magnitudes; an overflow would cost the step.{}{}",
        scale_to_type(scale, format), window.low, all_tensors(tensors.size()), scale, join(advice.first_hurt),
        percent(options.tolerance), say_reliability(format, options), say_nonfinite(tensors));
  return fmt::format(
      "{}{}\n  Why: it fits {}, as 2^{} to 2^{} do. Below, "
      "underflow costs {} more than {} of its sum of magnitudes; above, a value overflows. {}.{}{}",
      scale_to_type(scale, format), advice.fits_unscaled && scale != 0 ? "; scale 1 would do too" : "",
      all_tensors(tensors.size()), window.low, window.high, join(advice.first_hurt),
      percent(options.tolerance), say_choice(scale, window, options), say_reliability(format, options),
      say_nonfinite(tensors));
}

std::string say_no_scale_fits(std::span<const TensorFit> tensors, const Advice& advice,
                              const FloatFormat& format, const AdvisorOptions& options) {
  const std::string limits = fmt::format("underflow of at most {} and no overflow in {}",
                                         percent(options.tolerance), to_string(format));
  std::string text =
      advice.recommended
          ? fmt::format(
                "{} suits {} of {}; no single scale fits all:", scale_to_type(*advice.recommended, format),
                tensors.size() - advice.outliers.size(), count_of_tensors(tensors.size()))
          : "No scale fits:";
  for (const Remedy remedy : {Remedy::own_scale, Remedy::bf16_range, Remedy::fp32_island}) {
    text += say_remedy(remedy, advice);
  }
  if (!advice.recommended)
    text += fmt::format("\n  Why: no scale gives a tensor {}", limits);
  else if (const int room = largest_without_overflow(tensors) - *advice.recommended; room >= 0)
    text += fmt::format(
        "\n  Why: nothing overflows up to a factor of 2^{} above it, and it gives {} tensors {}; an overflow "
        "anywhere costs the step",
        room, tensors.size() - advice.outliers.size(), limits);
  else
    text += fmt::format("\n  Why: of all scales it gives the most tensors {}", limits);
  return text + say_nonfinite(tensors);
}

std::string say_no_scale_needed(std::span<const TensorFit> tensors, const FloatFormat& format,
                                const AdvisorOptions& options) {
  return fmt::format(
      "No loss scale is needed: {} has the exponents of FP32\n  Why: at S = 1 "
      "underflow costs {} at most {} of its sum of magnitudes, and nothing overflows{}",
      to_string(format),
      tensors.size() == 1 ? "the tensor" : fmt::format("each of {} tensors", tensors.size()),
      percent(options.tolerance), say_nonfinite(tensors));
}

std::string say_any_scale_fits(std::span<const TensorFit> tensors) {
  const char* reason =
      tensors.empty() ? "there is no tensor to judge" : "no tensor has a nonzero finite value";
  return fmt::format("Any loss scale fits: {}{}", reason, say_nonfinite(tensors));
}

}  // namespace halfscope
