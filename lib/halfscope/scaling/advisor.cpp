// Windows by bisection of the what-if counts, their intersection, and the sentences about it.
#include <halfscope/scaling/advisor.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/format/round.hpp>
#include <halfscope/scaling/advisor_words.hpp>
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
  const BinadeRange binades{ExponentHistogram::first_exponent, histogram.counts().binades};
  return static_cast<double>(what_if(binades, bf16, 0).flushed) <=
             tolerance * static_cast<double>(histogram.nonzero()) &&
         std::isfinite(round(histogram.max_abs(), Quantizer{bf16}));
}

/// What the tensors that `agree` have in common; low > high where that is nothing.
template <typename Predicate>
ScaleWindow intersection(std::span<const TensorFit> tensors, Predicate&& agree) {
  ScaleWindow joint{least_scale, greatest_scale};
  for (const TensorFit& tensor : tensors) {
    if (tensor.any_scale || !agree(tensor)) continue;
    joint = {std::max(joint.low, tensor.underflow_low), std::min(joint.high, tensor.overflow_high)};
  }
  return joint;
}

int choose(const ScaleWindow& window, const AdvisorOptions& options) {
  return std::clamp(std::min(window.high - options.headroom_log2, options.ceiling_log2), window.low,
                    window.high);
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
    return {tensor, Remedy::own_scale, choose(*window, options)};
  }
  return {tensor, tensor.fits_bf16 ? Remedy::bf16_range : Remedy::fp32_island, std::nullopt};
}

Advice advise_outliers(std::span<const TensorFit> tensors, const FloatFormat& format,
                       const AdvisorOptions& options) {
  const int common = most_common_scale(tensors);
  const auto agrees = [common](const TensorFit& tensor) {
    return tensor.any_scale || (tensor.window() && tensor.window()->contains(common));
  };
  Advice advice;
  for (const TensorFit& tensor : tensors) {
    if (!agrees(tensor)) advice.outliers.push_back(outlier_of(tensor, options));
  }
  const bool someone = std::any_of(tensors.begin(), tensors.end(),
                                   [](const TensorFit& tensor) { return tensor.window().has_value(); });
  if (someone) advice.best = choose(intersection(tensors, agrees), options);
  advice.verdict = say_no_scale_fits(tensors, advice, format, options);
  return advice;
}

}  // namespace

std::optional<ScaleWindow> TensorFit::window() const {
  if (any_scale || underflow_low > overflow_high) return std::nullopt;
  return ScaleWindow{underflow_low, overflow_high};
}

TensorFit fit_tensor(std::string name, const ExponentHistogram& histogram, const AdvisorOptions& options) {
  TensorFit fit{.name = std::move(name),
                .any_scale = histogram.nonzero() == 0,
                .fits_bf16 = bf16_holds(histogram, options.tolerance),
                .nonfinite = histogram.infinities() + histogram.nans()};
  if (fit.any_scale) return fit;
  const double tolerated = options.tolerance * static_cast<double>(histogram.nonzero());
  fit.underflow_low = first_scale([&](int scale_log2) {
    return static_cast<double>(what_if(histogram, scale_log2).flushed) <= tolerated;
  });
  fit.overflow_high =
      first_scale([&](int scale_log2) { return what_if(histogram, scale_log2).overflow > 0; }) - 1;
  return fit;
}

Advice advise(std::span<const TensorFit> tensors, const FloatFormat& format, const AdvisorOptions& options) {
  const ScaleWindow joint = intersection(tensors, [](const TensorFit&) { return true; });
  if (joint.low > joint.high) return advise_outliers(tensors, format, options);
  Advice advice;
  const bool any_scale = joint == ScaleWindow{least_scale, greatest_scale};
  if (!any_scale) {
    advice.joint = joint;
    advice.best = choose(joint, options);
    advice.recommended = advice.best;
  }
  advice.verdict = any_scale ? say_any_scale_fits(tensors) : say_scale_fits(tensors, advice, options);
  return advice;
}

}  // namespace halfscope
