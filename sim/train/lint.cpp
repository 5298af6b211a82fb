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

void lint_learning_rate(const RunSettings& settings, const RoleFormat& state) {
  const TrainConfig& config = settings.config;
  if (state.check(ConstantKind::learning_rate, "learning_rate", config.learning_rate)) return;
  if (config.warmup_steps <= 0) return;
  state.check(ConstantKind::warmup_rate, "learning_rate / warmup_steps", learning_rate(settings, 0),
              fmt::format("choose fewer warmup_steps, or {}", keep_state));
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
  const PrecisionPolicy& policy = settings.policy;
  std::vector<Finding> found;
  const RoleFormat state(policy.quantizer(Role::optimizer_state), found);
  lint_learning_rate(settings, state);
  if (const auto own = settings.optimizer->kind.lint) {
    own({.learning_rate = settings.config.learning_rate,
         .options = settings.config.optimizer_options,
         .state = state,
         .master = {policy.quantizer(Role::master_weight), found}});
  }
  lint_loss_scale(settings, {policy.quantizer(Role::activation_gradient), found});
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
