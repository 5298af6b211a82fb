// The power-of-two loss scale for a set of tensors: enough from, overflow beyond, use, first hurt; with the
// reason.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope {

/// Tasks of a recorded experiment: all, and those in which a scale does no harm: the one that the default
/// options recommend, 1024, and the constant that is right most often, chosen on them.
struct JudgedTasks {
  int tasks = 0, right = 0, right_with_1024 = 0, right_with_best_constant = 0;
};
/// Tasks of advice-validity, in FP16, whose windows are wide.
inline constexpr JudgedTasks judged_in_fp16{12, 12, 12, 12};
/// Tasks of narrow-windows, whose gradients have fewer exponents than FP16's.
inline constexpr JudgedTasks judged_in_narrow_windows{34, 33, 5, 18};

struct AdvisorOptions {
  /// `flushed_magnitude` of a tensor that a scale may leave. The experiments where-loss-scaling,
  /// advice-validity and narrow-windows hold it against trainings.
  double tolerance = 0.2;
  int headroom_log2 = 3;  ///< between the largest value and overflow, where the window has room for it
  int ceiling_log2 = 24;  ///< highest recommendation: beyond it the scaled loss itself is in danger
};

/// Log2 of the largest scale that is an FP32 number: the loss is multiplied by it in FP32.
inline constexpr int largest_scale_log2 = 127;

/// Scales 2^low .. 2^high.
struct ScaleWindow {
  int low = 0;
  int high = 0;

  friend constexpr bool operator==(const ScaleWindow&, const ScaleWindow&) = default;
  [[nodiscard]] constexpr bool contains(int scale_log2) const {
    return low <= scale_log2 && scale_log2 <= high;
  }
};

/// Loss scales that fit a tensor. `underflow_low` is the smallest whose flushed magnitude is within the
/// tolerance, `overflow_high` the largest at which nothing overflows; both 0 for a tensor without nonzero
/// finite values, which takes any scale.
struct TensorFit {
  std::string name;
  bool any_scale = false;
  int underflow_low = 0;
  int overflow_high = 0;
  bool fits_bf16 =
      false;  ///< unscaled, BF16's flushed magnitude is within the tolerance and nothing overflows
  std::int64_t nonfinite = 0;

  /// At most up to `largest_scale_log2`. Nothing where no scale fits, and where any does.
  [[nodiscard]] std::optional<ScaleWindow> window() const;
};
[[nodiscard]] TensorFit fit_tensor(std::string name, const ExponentHistogram& histogram,
                                   const AdvisorOptions& options = {});

/// Log2 of the largest scale at which no tensor overflows, at most `largest_scale_log2`.
[[nodiscard]] int largest_without_overflow(std::span<const TensorFit> tensors);

/// The fit of a tensor over several steps, from those of the steps: gradients shrink while a network trains,
/// so the step that asks for the largest scale counts. Throws InvalidArgument for no fit.
[[nodiscard]] TensorFit merge_fits(std::span<const TensorFit> steps);

/// Remedy for a tensor that the best single scale leaves out.
enum class Remedy : std::uint8_t {
  own_scale,    ///< it has a window, elsewhere
  bf16_range,   ///< its range is wider than the format's, not than BF16's
  fp32_island,  ///< wider than BF16's too
};
template <>
inline constexpr std::array<std::string_view, 3> enum_names<Remedy>{"own_scale", "bf16_range", "fp32_island"};

struct Outlier {
  TensorFit tensor;
  Remedy remedy{};
  std::optional<int> scale_log2;  ///< for own_scale
};

struct Advice {
  std::optional<ScaleWindow>
      joint;  ///< scales 2^k that fit every tensor: enough from `low`, overflow beyond `high`
  /// The scale to use: one of `joint`, or half of it where that is one scale alone. Without a joint window
  /// the largest with a binade free below overflow if it fits half of the tensors, else one that fits the
  /// most. Empty where any scale fits, and where no tensor has a scale that fits it.
  std::optional<int> recommended;
  /// Whether training without a scale would do too: `joint` holds 1 and, its ends being estimates, 1/2 and 2.
  bool fits_unscaled = false;
  std::vector<std::string> first_hurt;  ///< the tensors that a scale below `joint` hurts first
  std::vector<Outlier> outliers;        ///< the tensors that `recommended` does not fit
  /// Lines: the scale to type, or that none fits; a remedy per kind of outlier; "  Why: ..."; "  Sure: ..."
  /// of a rule that was held against trainings.
  std::string verdict;
};

/// Looks for one scale for all `tensors`, counted for `format`. A larger scale costs nothing as long as
/// nothing overflows (Micikevicius et al., section 3.2), so that of the scales that fit the largest with
/// headroom is recommended; one binade is left free even where the window is narrower. 1 where it fits a
/// format with the exponents of FP32, which needs no loss scale.
[[nodiscard]] Advice advise(std::span<const TensorFit> tensors, const FloatFormat& format,
                            const AdvisorOptions& options = {});

}  // namespace halfscope
