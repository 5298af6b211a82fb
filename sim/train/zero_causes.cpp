// Repeats a step with more and more quantizers.
#include "sim/train/zero_causes.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

#include <halfscope/kernel/cast/convert.hpp>

namespace halfscope {
namespace {

constexpr std::size_t stages = enum_names<ZeroCause>.size();

/// Rules behind the policy's that switch operands off again, by stage.
constexpr std::array<std::string_view, stages> switched_off{
    "*=role, matmul=role", "data_gradient=role, weight_gradient=role", "weight_gradient=role",
    "weight_gradient.right=role", ""};

PrecisionPolicy at_stage(PrecisionPolicy policy, std::size_t stage) {
  for (OperandRule& rule : parse_operand_rules(switched_off[stage]))
    policy.operands.push_back(std::move(rule));
  return policy;
}

void check_no_transform(const PrecisionPolicy& policy) {
  for (const OperandRule& rule : policy.operands) {
    if (rule.format && rule.format->transform != OperandTransform::none) {
      throw InvalidArgument("zero_causes_every: " + to_string(rule) +
                            " mixes the terms of 16 examples; give operands without hadamard, or 0");
    }
  }
}

/// Matrices of linear layers.
bool is_explained(const Parameter& parameter) {
  return parameter.master.shape().size() == 2 && parameter.name.ends_with(".weight");
}

using ZeroMasks = std::vector<std::vector<bool>>;  // (parameter, element)

/// Which elements of the step's gradients are 0 under `policy`.
ZeroMasks zeros_under(const PrecisionPolicy& policy, std::uint64_t seed, const StepContext& context,
                      const RepeatedStep& step) {
  TrackerList nobody;
  Caster caster(policy, seed, nobody);
  caster.begin_step(context);
  step.repeat(caster, context.loss_scale);
  ZeroMasks zeros;
  for (const Parameter& parameter : step.store.parameters) {
    std::vector<bool>& own = zeros.emplace_back();
    if (!is_explained(parameter)) continue;
    const Array gradient = to_host_floats(parameter.gradient);
    for (const float value : gradient.values()) own.push_back(value == 0);
  }
  return zeros;
}

/// Counts element `i` of parameter `p`.
void count_element(const std::array<ZeroMasks, stages>& structural, bool is_zero, std::size_t p,
                   std::size_t i, ZeroCauses& causes) {
  ++causes.elements;
  if (structural.front()[p][i] && !structural.back()[p][i]) ++causes.only_unquantized;
  if (!is_zero) return;
  ++causes.zeros;
  std::size_t first = stages;
  while (first > 0 && structural[first - 1][p][i]) --first;
  if (first == stages) {
    ++causes.cancelled;
  } else {
    ++causes.by_cause[first];
  }
}

}  // namespace

Json to_json(const ZeroCauses& causes) {
  Json json{{"tensor", causes.tensor},
            {"elements", causes.elements},
            {"zeros", causes.zeros},
            {"cancelled", causes.cancelled},
            {"only_unquantized", causes.only_unquantized}};
  for (std::size_t i = 0; i < stages; ++i) json[std::string(enum_names<ZeroCause>[i])] = causes.by_cause[i];
  return json;
}

std::vector<ZeroCauses> explain_zeros(const PrecisionPolicy& policy, std::uint64_t seed,
                                      const StepContext& context, const RepeatedStep& step) {
  check_no_transform(policy);
  StepContext unobserved = context;
  unobserved.observations = nullptr;
  unobserved.weight_gradients = nullptr;
  unobserved.operand_maxima = nullptr;
  const ZeroMasks zeros = zeros_under(policy, seed, unobserved, step);
  unobserved.gradient_terms = GradientTerms::magnitudes;
  std::array<ZeroMasks, stages> structural;
  for (std::size_t stage = 0; stage < stages; ++stage)
    structural[stage] = zeros_under(at_stage(policy, stage), seed, unobserved, step);
  std::vector<ZeroCauses> all;
  for (std::size_t p = 0; p < zeros.size(); ++p) {
    if (zeros[p].empty()) continue;
    ZeroCauses& causes = all.emplace_back(ZeroCauses{.tensor = step.store.parameters[p].name});
    for (std::size_t i = 0; i < zeros[p].size(); ++i) count_element(structural, zeros[p][i], p, i, causes);
  }
  return all;
}

}  // namespace halfscope
