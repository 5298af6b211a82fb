// The rules of the lint: one function per group of constants.
#include "sim/train/lint.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/format/round.hpp>

#include "sim/train/build.hpp"

namespace halfscope {
namespace {

/// A format that constants are rounded to; a stochastic one is asked for its nearest number.
struct RoleFormat {
  explicit RoleFormat(const Quantizer& used) : quantizer(used) {
    if (quantizer.rounding == Rounding::stochastic) quantizer.rounding = Rounding::nearest_even;
  }
  [[nodiscard]] double operator()(double value) const {
    return static_cast<double>(round(static_cast<float>(value), quantizer));
  }
  [[nodiscard]] Finding finding(const std::string& what, double value) const {
    return {what, value, (*this)(value), to_string(quantizer), {}, {}};
  }

  Quantizer quantizer;
};

constexpr const char* keep_state = "give optimizer_state=fp32";

void lint_decay(const RoleFormat& state, const std::string& name, double decay, std::vector<Finding>& found) {
  if (decay < 1 && state(decay) >= 1) {
    found.push_back(state.finding(name, decay));
    found.back().consequence = "the average never forgets";
    found.back().remedy = fmt::format("choose a smaller {}, or {}", name, keep_state);
  }
}

void lint_adam(const TrainConfig& config, const RoleFormat& state, std::vector<Finding>& found) {
  const double smallest = std::ldexp(1.0, state.quantizer.format.lowest_exponent());
  if (config.epsilon > 0 && state(config.epsilon) == 0) {
    found.push_back(state.finding("epsilon", config.epsilon));
    found.back().consequence = "an element without a gradient is updated by 0 / 0, which is NaN";
    found.back().remedy = fmt::format("give epsilon={:.2g} or more, or {}", smallest, keep_state);
  }
  lint_decay(state, "beta1", config.beta1, found);
  lint_decay(state, "beta2", config.beta2, found);
  if (config.beta2 < 1 && state(1 - config.beta2) == 0) {
    found.push_back(state.finding("1 - beta2", 1 - config.beta2));
    found.back().consequence = "the second moment stays 0 and is divided by 0";
    found.back().remedy = fmt::format("choose a smaller beta2, or {}", keep_state);
  }
  // A square needs twice the exponents; what FP32 loses, formats with its range lose as well.
  const double normal = std::ldexp(1.0, state.quantizer.format.min_exponent());
  if (state.quantizer.format.exponent_bits < 8 && state(normal * normal) == 0) {
    found.push_back(state.finding("square of a gradient", normal * normal));
    found.back().consequence =
        fmt::format("gradients below {:.2g} have no second moment", std::sqrt(smallest / 2));
    found.back().remedy = keep_state;
  }
}

void lint_sgd(const TrainConfig& config, const RoleFormat& state, std::vector<Finding>& found) {
  lint_decay(state, "momentum", config.momentum, found);
  const double normal = std::ldexp(1.0, state.quantizer.format.min_exponent());
  const double rate = state(config.learning_rate);
  if (state.quantizer.format.exponent_bits < 8 && rate > 0 && state(rate * normal) == 0) {
    const double smallest = std::ldexp(1.0, state.quantizer.format.lowest_exponent());
    found.push_back(state.finding("learning_rate * gradient", rate * normal));
    found.back().consequence = fmt::format("gradients below {:.2g} update nothing", smallest / 2 / rate);
    found.back().remedy = keep_state;
  }
}

void lint_learning_rate(const RunSettings& settings, const RoleFormat& state, std::vector<Finding>& found) {
  const TrainConfig& config = settings.config;
  if (config.learning_rate > 0 && state(config.learning_rate) == 0) {
    found.push_back(state.finding("learning_rate", config.learning_rate));
    found.back().consequence = "every update is 0";
    found.back().remedy = keep_state;
    return;
  }
  const double first = learning_rate(settings, 0);
  if (config.warmup_steps > 0 && first > 0 && state(first) == 0) {
    found.push_back(state.finding("learning_rate / warmup_steps", first));
    found.back().consequence = "the first updates of the warm-up are 0";
    found.back().remedy = fmt::format("choose fewer warmup_steps, or {}", keep_state);
  }
}

bool is_adam(const TrainConfig& config) {
  return config.optimizer == "adam" || config.optimizer == "adamw";
}

/// Adam's updates are about as large as the learning rate.
void lint_update(const TrainConfig& config, const RoleFormat& master, std::vector<Finding>& found) {
  if (!is_adam(config) || config.learning_rate <= 0) return;
  if (master(1 + config.learning_rate) != 1) return;
  found.push_back(master.finding("1 + learning_rate", 1 + config.learning_rate));
  found.back().consequence = "a weight of 1 does not feel a whole step";
  found.back().remedy = "give master_weight=fp32";
}

/// The largest gradient next to a loss that is a mean over the batch.
void lint_loss_scale(const RunSettings& settings, const RoleFormat& gradient, std::vector<Finding>& found) {
  const TrainConfig& config = settings.config;
  const auto scaler = std::move(make_loss_scalers(settings, 1).front());
  const double largest = scaler->scale() * config.loss_weight / static_cast<double>(config.batch);
  const double rounded = gradient(largest);
  if (rounded != 0 && std::isfinite(rounded)) return;
  found.push_back(gradient.finding("loss scale * loss_weight / batch", largest));
  if (rounded == 0) {
    found.back().consequence = "every gradient is flushed to zero";
    found.back().remedy = "choose a larger loss_scale";
  } else {
    found.back().consequence = scaler->needs() != GradientDetail::none
                                   ? "steps are skipped until the scale has fallen"
                                   : "a wrong prediction makes the weights infinite or NaN";
    found.back().remedy = "choose a smaller loss scale";
  }
}

}  // namespace

std::vector<Finding> lint(const RunSettings& settings) {
  const TrainConfig& config = settings.config;
  const PrecisionPolicy& policy = settings.policy;
  const RoleFormat state(policy.quantizer(Role::optimizer_state));
  const RoleFormat master(policy.quantizer(Role::master_weight));
  const RoleFormat gradient(policy.quantizer(Role::activation_gradient));
  std::vector<Finding> found;
  if (!state.quantizer.is_identity()) {
    lint_learning_rate(settings, state, found);
    if (is_adam(config)) lint_adam(config, state, found);
    if (config.optimizer == "sgd") lint_sgd(config, state, found);
  }
  if (!master.quantizer.is_identity()) lint_update(config, master, found);
  if (!gradient.quantizer.is_identity()) lint_loss_scale(settings, gradient, found);
  return found;
}

std::string to_string(const Finding& finding) {
  const std::string rounded =
      std::isfinite(finding.rounded) ? fmt::format("{:g}", finding.rounded) : "infinite";
  return fmt::format("{} = {:g} is {} in {}: {}; {}", finding.what, finding.value, rounded, finding.format,
                     finding.consequence, finding.remedy);
}

Json to_json(const Finding& finding) {
  const Json rounded = std::isfinite(finding.rounded) ? Json(finding.rounded) : Json();
  return {{"what", finding.what},
          {"value", finding.value},
          {"rounded", rounded},
          {"format", finding.format},
          {"consequence", finding.consequence},
          {"remedy", finding.remedy}};
}

}  // namespace halfscope
