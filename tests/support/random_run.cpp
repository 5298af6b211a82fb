// Scalers go through gradients that wander, burst, vanish, grow, or are NaN.
#include "tests/support/random_run.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace random_run_of_tests {
namespace {

constexpr std::size_t run_length = 120;

double uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution(low, high)(random);
}

/// log2 of max|g| by step.
class Gradients {
 public:
  explicit Gradients(std::mt19937_64& random)
      : random_(random),
        middle_(uniform(random, -8, 8)),
        spread_(uniform(random, 0, 3)),
        drift_(uniform(random, 0, 1) < 0.3 ? uniform(random, -0.15, 0.15) : 0),
        burst_share_(uniform(random, 0, 1) < 0.3 ? 0.1 : 0),
        zero_share_(uniform(random, 0, 1) < 0.1 ? 0.2 : 0),
        nan_share_(uniform(random, 0, 1) < 0.4 ? uniform(random, 0, 0.05) : 0),
        nan_from_(uniform(random, 0, 1) < 0.15 ? uniform(random, 20, run_length) : HUGE_VAL) {}

  double largest(std::size_t step) {
    const double where = static_cast<double>(step), draw = uniform(random_, 0, 1);
    if (draw < nan_share_ || where >= nan_from_) return HUGE_VAL;
    if (uniform(random_, 0, 1) < zero_share_) return 0;
    const double burst = uniform(random_, 0, 1) < burst_share_ ? uniform(random_, 2, 12) : 0;
    return std::exp2(middle_ + drift_ * where + burst + uniform(random_, -spread_, spread_));
  }

 private:
  std::mt19937_64& random_;
  double middle_, spread_, drift_, burst_share_, zero_share_, nan_share_, nan_from_;
};

ScalerSettings random_settings(const RunRequest& request, std::mt19937_64& random) {
  const auto has = [&](std::string_view option) {
    return std::ranges::find(request.scaler->options, option, &ScalerOption::name) !=
           request.scaler->options.end();
  };
  ScalerSettings settings;
  if (has("initial_scale")) settings["initial_scale"] = std::exp2(std::floor(uniform(random, 4, 15)));
  if (request.default_settings) return settings;
  if (has("growth_interval")) settings["growth_interval"] = std::floor(uniform(random, 11, 40));
  if (has("hysteresis")) settings["hysteresis"] = std::floor(uniform(random, 1, 4));
  return settings;
}

/// The step after `lost` ones has weights that are NaN.
RunStep next_step(LossScaler& scaler, double largest, bool lost) {
  RunStep step{.scale = scaler.scale(), .largest = lost ? HUGE_VAL : largest};
  const double scaled = step.largest * step.scale;
  const StepGradients gradients{.finite = scaled < fp16_overflow, .max_abs = static_cast<float>(scaled)};
  step.skipped = scaler.skips(gradients);
  try {
    static_cast<void>(scaler.update(gradients));
  } catch (const RuntimeFailure&) {
    step.ends = true;
  }
  step.next = scaler.scale();
  return step;
}

/// Goes on from the last of `steps`, which the scaler has seen, up to `length` of them.
void go_on(LossScaler& scaler, std::vector<RunStep>& steps, std::size_t length, std::mt19937_64& random) {
  Gradients gradients(random);
  bool lost = !steps.empty() && steps.back().is_lost();
  while (steps.size() < length && (steps.empty() || !steps.back().ends)) {
    steps.push_back(next_step(scaler, gradients.largest(steps.size()), lost));
    lost = lost || steps.back().is_lost();
  }
}

std::unique_ptr<LossScaler> scaler_of(const RandomRun& run) {
  return make_scaler(*run.scaler, run.settings);
}

}  // namespace
}  // namespace random_run_of_tests

RandomRun random_run(const RunRequest& request, std::mt19937_64& random) {
  using namespace random_run_of_tests;
  RandomRun run{.scaler = request.scaler, .settings = random_settings(request, random)};
  const auto scaler = scaler_of(run);
  go_on(*scaler, run.steps, run_length, random);
  if (!request.restarts || run.steps.size() < run_length) return run;
  run.attempt = run.steps;
  run.attempt.resize(40 + random() % 60);
  run.resumed = run.attempt.size() / 20 * 20 - 20;
  run.steps.resize(run.resumed);
  const auto resumed = scaler_of(run);
  for (const RunStep& step : run.steps) static_cast<void>(next_step(*resumed, step.largest, false));
  go_on(*resumed, run.steps, run_length, random);
  return run;
}

std::vector<std::int64_t> RandomRun::skips() const {
  std::vector<std::int64_t> skipped;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].skipped) skipped.push_back(static_cast<std::int64_t>(i) + 1);
  return skipped;
}

std::vector<std::int64_t> RandomRun::overflows_at(double scale, std::int64_t first, std::int64_t last) const {
  std::vector<std::int64_t> overflows;
  for (std::int64_t i = first; i <= last; ++i)
    if (steps.at(static_cast<std::size_t>(i - 1)).overflows_at(scale)) overflows.push_back(i);
  return overflows;
}

}  // namespace halfscope
