// Windows by bisection of the what-if counts, their intersection, and the sentences about it.
#include <halfscope/scaling/advisor.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <halfscope/format/round.hpp>
#include <halfscope/scaling/detail/advisor_words.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace {

/// Beyond these, the smallest float overflows every format and the largest is flushed by every one.
constexpr int least_scale = -512, greatest_scale = 512;

/// The least scale at which `holds`, which stays true from there on.
template <typename Predicate>
int first_scale(Predicate&& holds) {
  int low = least_scale, high = greatest_scale;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (holds(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// Flushing depends on powers of two alone, and overflow on the largest value: no edge of the histogram's own
/// format is needed to tell what BF16 would do.
bool bf16_holds(const ExponentHistogram& histogram, double tolerance) {
  return std::isfinite(round(histogram.max_abs(), Quantizer{bf16})) &&
         flushed_magnitude(filled_binades(histogram), bf16, 0) <= tolerance;
}

/// Whether a loss scale of such a format has nothing to do: its exponents are those of FP32.
bool has_range_of_fp32(const FloatFormat& format) {
  return format.exponent_bits == fp32.exponent_bits;
}

/// The tensors of which `low` is the smallest scale.
std::vector<std::string> limited_by(std::span<const TensorFit> tensors, int low) {
  std::vector<std::string> names;
  for (const TensorFit& tensor : tensors) {
    if (!tensor.any_scale && tensor.underflow_low == low) names.push_back(tensor.name);
  }
  return names;
}

/// Scales that the tensors that `agree` have in common; low > high if there are none.
template <typename Predicate>
ScaleWindow intersection(std::span<const TensorFit> tensors, Predicate&& agree) {
  ScaleWindow joint{least_scale, greatest_scale};
  for (const TensorFit& tensor : tensors) {
    if (tensor.any_scale || !agree(tensor)) continue;
    joint = {std::max(joint.low, tensor.underflow_low),
             std::min({joint.high, tensor.overflow_high, largest_scale_log2})};
  }
  return joint;
}

int choose_within(const ScaleWindow& window, const AdvisorOptions& options) {
  return std::clamp(std::min(window.high - options.headroom_log2, options.ceiling_log2), window.low,
                    window.high);
}

/// The largest scale that leaves a binade free where `overflow_high` is the largest without overflow: steps
/// that were not watched have larger values, and an overflow costs the step, or the run.
int below_overflow(int overflow_high, const AdvisorOptions& options) {
  return overflow_high - std::min(options.headroom_log2, 1);
}

int choose(const ScaleWindow& window, const AdvisorOptions& options) {
  return std::min(choose_within(window, options), below_overflow(window.high, options));
}

/// The scale that the windows of the most tensors contain.
int most_common_scale(std::span<const TensorFit> tensors) {
  std::int64_t most = -1;
  int scale = 0;
  for (int candidate = least_scale; candidate <= greatest_scale; ++candidate) {
    const auto agreeing = std::count_if(tensors.begin(), tensors.end(), [&](const TensorFit& tensor) {
      return tensor.window() && tensor.window()->contains(candidate);
    });
    if (agreeing <= most) continue;
    most = agreeing;
    scale = candidate;
  }
  return scale;
}

Outlier outlier_of(const TensorFit& tensor, const AdvisorOptions& options) {
  if (const auto window = tensor.window()) {
    return {tensor, Remedy::own_scale, choose_within(*window, options)};
  }
  return {tensor, tensor.fits_bf16 ? Remedy::bf16_range : Remedy::fp32_island, std::nullopt};
}

bool fits_at(const TensorFit& tensor, int scale_log2) {
  return tensor.any_scale || (tensor.window() && tensor.window()->contains(scale_log2));
}

/// Where none fits all tensors: the largest scale with a binade free below overflow, if it fits half of those
/// that ask for any; else the one that fits the most.
int choose_for_most(std::span<const TensorFit> tensors, const AdvisorOptions& options) {
  const int highest = below_overflow(largest_without_overflow(tensors), options);
  const auto asking = std::ranges::count(tensors, false, &TensorFit::any_scale);
  const auto fitting =
      std::ranges::count_if(tensors, [&](const TensorFit& t) { return !t.any_scale && fits_at(t, highest); });
  if (2 * fitting >= asking) return highest;
  const int common = most_common_scale(tensors);
  return choose_within(intersection(tensors, [&](const TensorFit& t) { return fits_at(t, common); }),
                       options);
}

Advice advise_outliers(std::span<const TensorFit> tensors, const FloatFormat& format,
                       const AdvisorOptions& options) {
  Advice advice;
  if (std::ranges::any_of(tensors, [](const TensorFit& tensor) { return tensor.window().has_value(); }))
    advice.recommended = choose_for_most(tensors, options);
  for (const TensorFit& tensor : tensors) {
    if (!advice.recommended || !fits_at(tensor, *advice.recommended))
      if (!tensor.any_scale) advice.outliers.push_back(outlier_of(tensor, options));
  }
  advice.verdict = say_no_scale_fits(tensors, advice, format, options);
  return advice;
}

}  // namespace

int largest_without_overflow(std::span<const TensorFit> tensors) {
  int largest = largest_scale_log2;
  for (const TensorFit& tensor : tensors)
    if (!tensor.any_scale) largest = std::min(largest, tensor.overflow_high);
  return largest;
}

std::optional<ScaleWindow> TensorFit::window() const {
  const int high = std::min(overflow_high, largest_scale_log2);
  if (any_scale || underflow_low > high) return std::nullopt;
  return ScaleWindow{underflow_low, high};
}

TensorFit fit_tensor(std::string name, const ExponentHistogram& histogram, const AdvisorOptions& options) {
  TensorFit fit{.name = std::move(name),
                .any_scale = histogram.nonzero() == 0,
                .fits_bf16 = bf16_holds(histogram, options.tolerance),
                .nonfinite = histogram.infinities() + histogram.nans()};
  if (fit.any_scale) return fit;
  const BinadeRange binades = filled_binades(histogram);
  const FloatFormat& format = histogram.format();
  fit.underflow_low = first_scale(
      [&](int scale_log2) { return flushed_magnitude(binades, format, scale_log2) <= options.tolerance; });
  fit.overflow_high =
      first_scale([&](int scale_log2) { return what_if(binades, format, scale_log2).overflow > 0; }) - 1;
  return fit;
}

TensorFit merge_fits(std::span<const TensorFit> steps) {
  if (steps.empty()) throw InvalidArgument("a tensor's fit needs one step at least");
  TensorFit merged = steps.front();
  for (const TensorFit& step : steps.subspan(1)) {
    merged.nonfinite = std::max(merged.nonfinite, step.nonfinite);
    if (step.any_scale) continue;
    const bool first = std::exchange(merged.any_scale, false);
    merged.underflow_low = first ? step.underflow_low : std::max(merged.underflow_low, step.underflow_low);
    merged.overflow_high = first ? step.overflow_high : std::min(merged.overflow_high, step.overflow_high);
    merged.fits_bf16 = (first || merged.fits_bf16) && step.fits_bf16;
  }
  return merged;
}

Advice advise(std::span<const TensorFit> tensors, const FloatFormat& format, const AdvisorOptions& options) {
  const ScaleWindow joint = intersection(tensors, [](const TensorFit&) { return true; });
  if (joint.low > joint.high) return advise_outliers(tensors, format, options);
  Advice advice;
  const bool any_scale = joint == ScaleWindow{least_scale, greatest_scale};
  if (!any_scale) {
    advice.joint = joint;
    advice.recommended = choose(joint, options);
    advice.fits_unscaled = joint.contains(-1) && joint.contains(1);
    advice.first_hurt = limited_by(tensors, joint.low);
  }
  if (!any_scale && has_range_of_fp32(format) && joint.contains(0)) {
    advice.recommended = 0;
    advice.verdict = say_no_scale_needed(tensors, format, options);
    return advice;
  }
  advice.verdict = any_scale ? say_any_scale_fits(tensors) : say_scale_fits(tensors, advice, format, options);
  return advice;
}

}  // namespace halfscope
