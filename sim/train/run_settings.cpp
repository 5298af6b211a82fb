// Texts to values, each once, and what two of them together rule out.
#include "sim/train/run_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <halfscope/core/name_list.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/policy/policy_texts.hpp>

#include "sim/train/entry_tables.hpp"
#include "sim/train/what_if_updates.hpp"

namespace halfscope {
namespace {

/// The role settings of a config, in the order of the enum.
std::array<std::string RoleSettings::*, enum_names<Role>.size()> role_fields() {
  return {&RoleSettings::weight,          &RoleSettings::activation,    &RoleSettings::activation_gradient,
          &RoleSettings::weight_gradient, &RoleSettings::master_weight, &RoleSettings::optimizer_state};
}

/// Rules of the three settings, general ones before those of a glob.
std::vector<OperationRule> operation_rules(const TrainConfig& config) {
  std::vector<OperationRule> rules;
  for (const auto& [list, text] : {std::pair{OperationList::allow, &config.operations.allow},
                                   {OperationList::deny, &config.operations.deny},
                                   {OperationList::infer, &config.operations.infer}}) {
    for (OperationRule& rule : parse_operation_rules(list, *text)) rules.push_back(std::move(rule));
  }
  check_operation_rules(rules);
  const auto generality = [](const OperationRule& rule) {
    return (rule.layers == "*" ? 0 : 2) + (rule.operation == "*" ? 0 : 1);
  };
  std::stable_sort(rules.begin(), rules.end(), [&](const OperationRule& a, const OperationRule& b) {
    return generality(a) < generality(b);
  });
  return rules;
}

/// The policy's texts of the config.
PolicyTexts texts_of(const TrainConfig& config) {
  PolicyTexts texts{.policy = config.policy,
                    .order = config.operations.order,
                    .sum_order = config.operations.sum_order,
                    .operands = config.operations.operands};
  const auto fields = role_fields();
  for (std::size_t role = 0; role < fields.size(); ++role) texts.roles[role] = config.roles.*fields[role];
  return texts;
}

/// The policy that the config names, with what its settings change, and the lists of its operations.
PrecisionPolicy policy_of(const TrainConfig& config) {
  PrecisionPolicy policy = parse_policy(texts_of(config));
  policy.rules = operation_rules(config);
  policy.cast_cache = parse_enum<CastCache>("cast_cache", config.operations.cast_cache);
  if (!config.operations.weight_sum.empty())
    policy.weight_sum = parse_enum<WeightSum>("weight sum", config.operations.weight_sum);
  return policy;
}

/// Rules of `policy` that the policy of its name does not have.
std::vector<OperandRule> own_operand_rules(const PrecisionPolicy& policy, const std::string& name) {
  const std::vector<OperandRule> named = named_policy(name).operands;
  std::vector<OperandRule> own;
  for (const OperandRule& rule : policy.operands)
    if (std::ranges::count(named, rule) == 0) own.push_back(rule);
  return own;
}

/// A policy that rounds gradients: without that no scale has an error.
PrecisionPolicy probe_policy(const TrainConfig& config, const PrecisionPolicy& own) {
  if (!config.probes.policy.empty()) {
    return named_policy(config.probes.policy);
  }
  return own.quantizer(Role::activation_gradient).is_identity() ? fp16_mixed_policy() : own;
}

std::optional<ProbeOptions> parse_probes(const RunSettings& settings) {
  std::vector<double> scales = parse_scales(settings.config.probes.scales);
  if (scales.empty()) return std::nullopt;
  ProbeOptions options{std::move(scales), probe_policy(settings.config, settings.policy)};
  if (settings.execution == Execution::native) check_native(options.policy);
  return options;
}

void check_execution_fits(const RunSettings& settings, const PrecisionPolicy& policy) {
  if (settings.device == Device::cuda) {
    check_device_product_model(policy.products);
    if (policy.weight_sum != WeightSum::plain)
      throw InvalidArgument("device = cuda: weight_sum = " + std::string(name_of(policy.weight_sum)) +
                            " is computed on the CPU only; give device = cpu, or weight_sum = plain");
  }
  if (settings.execution == Execution::emulated) {
    if (policy.products.order != AccumulateOrder::cublas) return;
    throw InvalidArgument("order = " + to_string(policy.products) +
                          " has no order that could be emulated; give execution = native, or another model");
  }
  if (settings.device != Device::cuda) {
    throw InvalidArgument("execution = native: device = " + settings.config.device +
                          " has no memory of 16 bits; give device = cuda, or execution = emulated");
  }
  check_native(policy);
}

/// Empty where sums are plain and the policy of that name has no others: runs from before the setting have
/// none.
std::string written_weight_sum(const PrecisionPolicy& policy, const std::string& name) {
  const bool is_plain =
      policy.weight_sum == WeightSum::plain && named_policy(name).weight_sum == WeightSum::plain;
  return is_plain ? "" : std::string(name_of(policy.weight_sum));
}

/// Writes out what the config leaves to its policy.
void write_policy(const PrecisionPolicy& policy, TrainConfig& config) {
  const auto fields = role_fields();
  for (std::size_t role = 0; role < fields.size(); ++role) {
    config.roles.*fields[role] = to_string(policy.quantizer(static_cast<Role>(role)));
  }
  config.operations.order = to_string(policy.products);
  config.operations.sum_order = to_string(policy.reductions);
  config.operations.weight_sum = written_weight_sum(policy, config.policy);
  config.operations.operands = to_string(policy.operands);
}

/// Most parts of a batch that casts tell apart.
constexpr std::int64_t most_batch_parts = 131071;

/// Throws unless the batch has as many parts of equal size.
void check_parts(const TrainConfig& config) {
  const std::int64_t parts = config.parts.ranks * config.parts.micro_batches;
  if (parts > most_batch_parts) {
    throw InvalidArgument(
        fmt::format("ranks = {} with micro_batches = {} are {} parts of a batch; give {} at most",
                    config.parts.ranks, config.parts.micro_batches, parts, most_batch_parts));
  }
  if (config.batch % parts == 0) return;
  if (config.parts.ranks == 1) {
    throw InvalidArgument(fmt::format("micro_batches = {} does not divide batch = {}; give a divisor of it",
                                      config.parts.micro_batches, config.batch));
  }
  throw InvalidArgument(fmt::format(
      "ranks = {}{} do not divide batch = {}; give a multiple of {} as batch", config.parts.ranks,
      config.parts.micro_batches == 1 ? ""
                                      : fmt::format(" with micro_batches = {}", config.parts.micro_batches),
      config.batch, parts));
}

}  // namespace

RunSettings parsed(const TrainConfig& config) {
  RunSettings settings{.config = with_entry_options(config),
                       .device = parse_enum<Device>("device", config.device),
                       .execution = parse_enum<Execution>("execution", config.execution),
                       .policy = policy_of(config)};
  settings.own_operands = own_operand_rules(settings.policy, config.policy);
  check_execution_fits(settings, settings.policy);
  if (!config.policy_from.empty()) {
    settings.later = parse_policy_switch(config.policy_from, settings.policy);
    check_execution_fits(settings, settings.later->policy);
  }
  if (!config.evaluation.second_execution.empty()) {
    settings.second = parse_second_execution(config.evaluation.second_execution, settings.policy);
    check_execution_fits(settings, *settings.second);
  }
  write_policy(settings.policy, settings.config);
  settings.scaler = &find_scaler(config.loss_scale);
  settings.config.scaler_options = resolve_options(config.loss_scale, config.scaler_options);
  settings.probes = parse_probes(settings);
  settings.what_if_weights = parse_weight_formats(config.what_if_weights);
  settings.trackers = parse_trackers(config.trackers);
  settings.observed_roles = parse_roles(config.observe_roles);
  settings.model = &find_in_table("model", config.model, model_table);
  check_parts(config);
  settings.gradient_sum = parse_quantizer(config.parts.gradient_sum);
  settings.config.parts.gradient_sum = to_string(settings.gradient_sum);
  settings.all_reduce = parse_all_reduce(config.parts.all_reduce);
  settings.config.parts.all_reduce = to_string(settings.all_reduce);
  settings.predivide = parse_gradient_division(config.parts.predivide);
  settings.config.parts.predivide = to_string(settings.predivide);
  settings.optimizer = &find_in_table("optimizer", config.optimizer, optimizer_table);
  settings.clipped_gradients = parse_enum<ClippedGradients>("gradients", config.clip_gradients);
  settings.loss_scalers = parse_enum<LossScalers>("loss scalers", config.loss_scalers);
  settings.schedule = parse_enum<Schedule>("schedule", config.schedule);
  settings.recorded_gradients = parse_enum<GradientDetail>("detail", config.record_gradients);
  return settings;
}

std::vector<const TrackerEntry*> parse_trackers(std::string_view names) {
  std::vector<const TrackerEntry*> trackers;
  if (names == "none") return trackers;
  for (const std::string_view name : names_in(names, table_names(tracker_table))) {
    trackers.push_back(&find_in_table("tracker", name, tracker_table));
  }
  return trackers;
}

RoleSet parse_roles(std::string_view names) {
  RoleSet roles{};
  for (const std::string_view name : names_in(names, enum_names<Role>)) {
    roles.add(parse_enum<Role>("role", name));
  }
  return roles;
}

}  // namespace halfscope
