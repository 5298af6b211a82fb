// OpenSeq2Seq's LogMax: the scale at which the largest gradient, taken to be log-normal, overflows in one of
// a thousand steps.
#include <algorithm>
#include <cmath>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/scaling/scalers/detail/scale_steps.hpp>

namespace halfscope {
namespace {

constexpr double ln_2 = 0.69314718055994530942;
constexpr double overflow_log = 16;  ///< log2 of FP16's overflow
constexpr double quantile = 3.09;    ///< the normal distribution's, at 0.999
constexpr double decay = 0.99, slow_decay = 0.999;

double log2_of(double x) {
  int exponent = 0;
  const double significand = std::frexp(x, &exponent);
  return exponent + static_cast<double>(log(static_cast<float>(significand))) / ln_2;
}

double exp2_of(double x) {
  const double whole = std::floor(x);
  return std::ldexp(static_cast<double>(exp(static_cast<float>((x - whole) * ln_2))),
                    static_cast<int>(whole));
}

void move(double& mean, double x, double decay_rate) {
  mean = decay_rate * mean + (1 - decay_rate) * x;
}

/// decay^count, by squaring: the same bits everywhere, which std::pow does not promise.
double power(double base, double count) {
  double result = 1;
  for (auto left = static_cast<std::int64_t>(count); left > 0; left /= 2) {
    if (left % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}

class LogMaxScaler final : public LossScaler {
 public:
  explicit LogMaxScaler(const ScalerSettings& options);
  [[nodiscard]] GradientDetail needs() const override { return GradientDetail::max_abs; }

 private:
  void on_finite(const StepGradients& gradients) override;
  void on_overflow() override;
  std::vector<ScalerNumber> counters() override;
  void add(double log_max);

  ScaleSteps steps_;
  double count_ = 0;
  double mean_ = 0, slow_mean_ = 0, slow_square_ = 0;  // not yet corrected for having begun at 0
};

LogMaxScaler::LogMaxScaler(const ScalerSettings& options)
    : LossScaler(options.at("initial_scale")), steps_(options) {}

void LogMaxScaler::on_finite(const StepGradients& gradients) {
  if (gradients.max_abs > 0) add(log2_of(gradients.max_abs / scale_));
}

void LogMaxScaler::on_overflow() {
  add(overflow_log);
}

void LogMaxScaler::add(double log_max) {
  ++count_;
  move(mean_, log_max, decay);
  move(slow_mean_, log_max, slow_decay);
  move(slow_square_, log_max * log_max, slow_decay);
  const double bias = 1 - power(decay, count_), slow_bias = 1 - power(slow_decay, count_);
  const double slow_mean = slow_mean_ / slow_bias;
  const double variance = std::max(0.0, slow_square_ / slow_bias - slow_mean * slow_mean);
  scale_ = steps_.clamp(exp2_of(overflow_log - mean_ / bias - quantile * std::sqrt(variance)));
}

std::vector<ScalerNumber> LogMaxScaler::counters() {
  return {{"count", &count_},
          {"mean", &mean_, lowest_log2, highest_log2},
          {"slow_mean", &slow_mean_, lowest_log2, highest_log2},
          {"slow_square", &slow_square_}};
}

}  // namespace

std::unique_ptr<LossScaler> make_logmax(const ScalerSettings& options) {
  return std::make_unique<LogMaxScaler>(options);
}

}  // namespace halfscope
