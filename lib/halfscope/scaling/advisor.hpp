// Which power-of-two loss scale fits a set of tensors, with the reason in words; or that none does, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope {

struct AdvisorOptions {
  double tolerance = 0.001;  ///< share of a tensor's nonzero values that a scale may flush
  int headroom_log2 = 3;     ///< between the largest value and overflow, where the window has room for it
  int ceiling_log2 = 24;     ///< of the recommendation: beyond it the scaled loss itself is in danger
};

/// Scales 2^low .. 2^high.
struct ScaleWindow {
  int low = 0;
  int high = 0;

  friend constexpr bool operator==(const ScaleWindow&, const ScaleWindow&) = default;
  [[nodiscard]] constexpr bool contains(int scale_log2) const {
    return low <= scale_log2 && scale_log2 <= high;
  }
};

/// What a tensor asks of a scale. `underflow_low` is the smallest that flushes no more than the tolerance,
/// `overflow_high` the largest at which nothing overflows; both 0 for a tensor without nonzero finite values,
/// which takes any scale.
struct TensorFit {
  std::string name;
  bool any_scale = false;
  int underflow_low = 0;
  int overflow_high = 0;
  bool fits_bf16 = false;  ///< BF16 flushes no more than the tolerance and overflows nowhere, unscaled
  std::int64_t nonfinite = 0;

  /// Nothing where no scale fits, and where any does.
  [[nodiscard]] std::optional<ScaleWindow> window() const;
};
[[nodiscard]] TensorFit fit_tensor(std::string name, const ExponentHistogram& histogram,
                                   const AdvisorOptions& options = {});

/// What to do about a tensor that the best single scale leaves out.
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
  std::optional<ScaleWindow> joint;  ///< scales 2^k that fit every tensor
  std::optional<int> recommended;    ///< one of them
  std::optional<int> best;           ///< the same; where none fits all, one that fits the most tensors
  std::vector<Outlier> outliers;     ///< the tensors that `best` does not fit
  std::string verdict;               ///< one line
};

/// Looks for one scale for all `tensors`, counted for `format`. A larger scale costs nothing as long as
/// nothing overflows (Micikevicius et al., section 3.2), so that of the scales that fit the largest with
/// headroom is recommended.
[[nodiscard]] Advice advise(std::span<const TensorFit> tensors, const FloatFormat& format,
                            const AdvisorOptions& options = {});

}  // namespace halfscope
