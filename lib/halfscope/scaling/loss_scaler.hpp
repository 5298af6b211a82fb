// Loss scalers: state machines that choose the factor the loss is multiplied by before the backward pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <halfscope/core/names.hpp>
#include <halfscope/scaling/layerwise_scale.hpp>
#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope {

/// How closely a step's weight gradients are looked at; each includes those before it.
enum class GradientDetail : std::uint8_t { none, finite, max_abs, histogram };
template <>
inline constexpr std::array<std::string_view, 4> enum_names<GradientDetail>{"none", "finite", "max_abs",
                                                                            "histogram"};

/// Observations of a step for a scaler, as far as it asked: all weight gradients together, still scaled.
struct StepGradients {
  bool finite = true;  ///< every element, after rounding
  float max_abs = 0;   ///< largest magnitude after rounding, if all elements are finite
  /// Histogram of the elements before rounding, in units of 2^histogram_log2: replaying a run at another
  /// scale than the one it was recorded at moves the unit.
  const ExponentHistogram* histogram = nullptr;
  int histogram_log2 = 0;
};

/// One number that a scaler remembers, under its name in a checkpoint, and its range: that of a count, which
/// is exact up to 2^53, unless another is given.
struct ScalerNumber {
  std::string name;
  double* value = nullptr;
  double low = 0, high = 0x1p53;
};

/// Range of the log2 of any number that a scaler looks at.
inline constexpr double lowest_log2 = -1100, highest_log2 = 1100;

class LossScaler {
 public:
  virtual ~LossScaler() = default;
  LossScaler(const LossScaler&) = delete;
  LossScaler& operator=(const LossScaler&) = delete;

  /// The factor for the next step.
  [[nodiscard]] double scale() const { return scale_; }
  /// Detail that `update` looks at; nobody needs to compute more.
  [[nodiscard]] virtual GradientDetail needs() const = 0;
  /// Options of the scales that each layer's gradient has besides in the backward pass, if the rule acts
  /// there.
  [[nodiscard]] virtual std::optional<LayerwiseOptions> layerwise() const { return std::nullopt; }
  /// Whether the weight update from such gradients must be skipped: they are not finite, and the scaler looks
  /// at them.
  [[nodiscard]] bool skips(const StepGradients& gradients) const {
    return needs() != GradientDetail::none && !gradients.finite;
  }
  /// Takes note of a step, and returns whether its update must be skipped. Throws RuntimeFailure where the
  /// scaler's rule is to end the run.
  bool update(const StepGradients& gradients);
  /// All that it remembers, to be written to a checkpoint or set from one.
  [[nodiscard]] std::vector<ScalerNumber> numbers();

 protected:
  explicit LossScaler(double initial_scale) : scale_(initial_scale) {}
  double scale_;

 private:
  virtual void on_finite(const StepGradients& gradients) = 0;
  virtual void on_overflow() = 0;
  /// The scaler's state besides the scale.
  virtual std::vector<ScalerNumber> counters() { return {}; }
};

}  // namespace halfscope
