// The largest scale at which nothing of the last steps would have overflowed, less a margin.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/scaling/scalers/detail/scale_steps.hpp>

namespace halfscope {
namespace {

constexpr double good_steps_per_binade = 1000;
/// A limit that limits nothing: no gradient but zeros.
constexpr double no_limit = 1000;

/// The largest k with 2^k * max_abs below 65520, where FP16 rounds to infinity.
double limit_log2(double max_abs) {
  if (max_abs == 0) return no_limit;
  int exponent = 0;
  const double significand = 2 * std::frexp(max_abs, &exponent);  // in [1, 2), of 2^(exponent - 1)
  constexpr double top = overflow_limit(fp16) * 0x1p-15;
  return (significand < top ? 15 : 14) - (exponent - 1);
}

class HeadroomScaler final : public LossScaler {
 public:
  explicit HeadroomScaler(const ScalerSettings& options);
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::max_abs; }

 private:
  void on_finite(const StepGradients& gradients) override;
  void on_overflow() override;
  std::vector<ScalerNumber> counters() override;
  /// Remembers a step's limit, as its log2, and moves the scale.
  void add(double limit_log2);

  ScaleSteps steps_;
  double margin_, patience_;
  std::vector<double> limits_;  ///< log2, of the last steps; a ring
  double count_ = 0;            ///< steps so far
  double widening_ = 0;         ///< widening of the margin, binades
  double good_steps_ = 0;       ///< since the last overflow or since the margin narrowed
  double stuck_steps_ = 0;      ///< overflows at the floor in a row
};

HeadroomScaler::HeadroomScaler(const ScalerSettings& options)
    : LossScaler(options.at("initial_scale")),
      steps_(options),
      margin_(options.at("margin")),
      patience_(options.at("patience")),
      limits_(static_cast<std::size_t>(options.at("history")), no_limit) {}

void HeadroomScaler::on_finite(const StepGradients& gradients) {
  stuck_steps_ = 0;
  if (++good_steps_ == good_steps_per_binade) {
    good_steps_ = 0;
    widening_ = std::max(0.0, widening_ - 1);
  }
  add(limit_log2(gradients.max_abs / scale_));
}

void HeadroomScaler::on_overflow() {
  if (steps_.at_floor(scale_) && ++stuck_steps_ >= patience_) {
    throw RuntimeFailure(fmt::format(
        "headroom: {:.0f} steps in a row have gradients that are not finite at a loss scale of {:g}, its "
        "floor: this is not a scaling problem; look for the first tensor that is not finite, or lower "
        "min_scale",
        stuck_steps_, scale_));
  }
  if (good_steps_ > 0) ++widening_;  // an overflow right after another is the same event
  good_steps_ = 0;
  add(std::ilogb(scale_) - 1);
}

void HeadroomScaler::add(double limit_log2) {
  const auto size = static_cast<double>(limits_.size());
  limits_[static_cast<std::size_t>(std::fmod(count_, size))] = limit_log2;
  ++count_;
  const double smallest = *std::min_element(limits_.begin(), limits_.end());
  const double wanted = steps_.clamp(std::ldexp(1.0, static_cast<int>(smallest - margin_ - widening_)));
  if (wanted < scale_ || count_ >= size) scale_ = wanted;
}

std::vector<ScalerNumber> HeadroomScaler::counters() {
  std::vector<ScalerNumber> all{{"count", &count_},
                                {"widening", &widening_},
                                {"good_steps", &good_steps_},
                                {"stuck_steps", &stuck_steps_}};
  for (std::size_t i = 0; i < limits_.size(); ++i)
    all.push_back({fmt::format("limit{}", i), &limits_[i], lowest_log2, highest_log2});
  return all;
}

}  // namespace

std::unique_ptr<LossScaler> make_headroom(const ScalerSettings& options) {
  return std::make_unique<HeadroomScaler>(options);
}

}  // namespace halfscope
