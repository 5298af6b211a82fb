// The constants of a run that the rules of policy/constant_rules.hpp are asked about, and the
// remedies.
#include "sim/train/lint.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>

#include <halfscope/format/round.hpp>
#include <halfscope/policy/constant_rules.hpp>

#include "sim/train/build.hpp"

namespace halfscope {
namespace {

/// The format of a role, whose losses are collected.
struct RoleFormat {
  Quantizer quantizer;
  std::vector<Finding>& found;

  /// Adds a finding where the format loses the constant; returns it, or nullptr.
  Finding* check(ConstantKind kind, const std::string& what, double value, const std::string& remedy) const {
    const std::optional<LostConstant> lost = lost_constant(kind, value, quantizer);
    if (!lost) return nullptr;
    Quantizer nearest = quantizer;
    if (nearest.rounding == Rounding::stochastic) nearest.rounding = Rounding::nearest_even;
    found.push_back({what, value, lost->rounded, to_string(nearest), lost->consequence, remedy});
    return &found.back();
  }
  [[nodiscard]] double smallest_normal() const { return std::ldexp(1.0, quantizer.format.min_exponent()); }
};

constexpr const char* keep_state = "give optimizer_state=fp32";

void lint_decay(const RoleFormat& state, const std::string& name, double decay) {
  state.check(ConstantKind::decay, name, decay, fmt::format("choose a smaller {}, or {}", name, keep_state));
}

void lint_adam(const TrainConfig& config, const RoleFormat& state) {
  const double smallest = std::ldexp(1.0, state.quantizer.format.lowest_exponent());
  state.check(ConstantKind::optimizer_epsilon, "epsilon", config.epsilon,
              fmt::format("give epsilon={:.2g} or more, or {}", smallest, keep_state));
  lint_decay(state, "beta1", config.beta1);
  lint_decay(state, "beta2", config.beta2);
  state.check(ConstantKind::one_minus_decay, "1 - beta2", 1 - config.beta2,
              fmt::format("choose a smaller beta2, or {}", keep_state));
  const double square = state.smallest_normal() * state.smallest_normal();
  state.check(ConstantKind::square, "square of a gradient", square, keep_state);
}

void lint_sgd(const TrainConfig& config, const RoleFormat& state) {
  lint_decay(state, "momentum", config.momentum);
  const double rate = static_cast<double>(round(static_cast<float>(config.learning_rate), state.quantizer));
  state.check(ConstantKind::update_of_gradient, "learning_rate * gradient", rate * state.smallest_normal(),
              keep_state);
}

void lint_learning_rate(const RunSettings& settings, const RoleFormat& state) {
  const TrainConfig& config = settings.config;
  if (state.check(ConstantKind::learning_rate, "learning_rate", config.learning_rate, keep_state)) return;
  if (config.warmup_steps <= 0) return;
  state.check(ConstantKind::warmup_rate, "learning_rate / warmup_steps", learning_rate(settings, 0),
              fmt::format("choose fewer warmup_steps, or {}", keep_state));
}

bool is_adam(const TrainConfig& config) {
  return config.optimizer == "adam" || config.optimizer == "adamw";
}

/// Adam's updates are about as large as the learning rate.
void lint_update(const TrainConfig& config, const RoleFormat& master) {
  if (!is_adam(config)) return;
  Finding* found = master.check(ConstantKind::update_beside_one, "1 + learning_rate", config.learning_rate,
                                "give master_weight=fp32");
  if (found == nullptr) return;
  found->value = 1 + config.learning_rate;
  found->rounded = 1;
}

/// The largest gradient next to a loss that is a mean over the batch.
void lint_loss_scale(const RunSettings& settings, const RoleFormat& gradient) {
  const TrainConfig& config = settings.config;
  const auto scaler = std::move(make_loss_scalers(settings, 1).front());
  const double largest = scaler->scale() * config.loss_weight / static_cast<double>(config.batch);
  Finding* found = gradient.check(ConstantKind::largest_gradient, "loss scale * loss_weight / batch", largest,
                                  "choose a smaller loss scale");
  if (found == nullptr) return;
  if (found->rounded == 0) {
    found->remedy = "choose a larger loss_scale";
  } else if (scaler->needs() != GradientDetail::none) {
    found->consequence = "steps are skipped until the scale has fallen";
  }
}

}  // namespace

std::vector<Finding> lint(const RunSettings& settings) {
  const TrainConfig& config = settings.config;
  const PrecisionPolicy& policy = settings.policy;
  std::vector<Finding> found;
  const RoleFormat state{policy.quantizer(Role::optimizer_state), found};
  const RoleFormat master{policy.quantizer(Role::master_weight), found};
  const RoleFormat gradient{policy.quantizer(Role::activation_gradient), found};
  if (!state.quantizer.is_identity()) {
    lint_learning_rate(settings, state);
    if (is_adam(config)) lint_adam(config, state);
    if (config.optimizer == "sgd") lint_sgd(config, state);
  }
  if (!master.quantizer.is_identity()) lint_update(config, master);
  if (!gradient.quantizer.is_identity()) lint_loss_scale(settings, gradient);
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
