// The limits of the last steps, and the scale that they leave room for.
#include <halfscope/scaling/scalers/headroom_scaler.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  constexpr double top = 65520 * 0x1p-15;
  return (significand < top ? 15 : 14) - (exponent - 1);
}

}  // namespace

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
  for (std::size_t i = 0; i < limits_.size(); ++i) all.push_back({fmt::format("limit{}", i), &limits_[i]});
  return all;
}

}  // namespace halfscope
