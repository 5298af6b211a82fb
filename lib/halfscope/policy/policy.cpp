// The named precision policies.
#include <halfscope/policy/policy.hpp>

#include <algorithm>

#include <halfscope/policy/detail/globs.hpp>

namespace halfscope {
namespace {

PrecisionPolicy with_tensors_in(const FloatFormat& format) {
  return tensors_in({.format = format});
}

/// Layers whose products policies of operands leave in the roles' formats: the heads of language models.
constexpr std::array recipe_heads{"output", "head", "masked_words*"};

/// FP32 parameters, and operations in `format` as a column of the table says.
PrecisionPolicy autocast_policy(const FloatFormat& format, OperationList OperationEntry::*column) {
  PrecisionPolicy policy = with_tensors_in(format);
  policy.parameters = StoredParameters::fp32;
  for (std::size_t i = 0; i < operation_table.size(); ++i) policy.lists[i] = operation_table[i].*column;
  return policy;
}

}  // namespace

std::string to_string(const ScopedAccumulate& scoped) {
  return to_string(scoped.model) + (scoped.layers == "*" ? "" : "@" + scoped.layers);
}

ScopedAccumulate parse_scoped_accumulate(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return {.model = parse_accumulate_model(text)};
  return {.model = parse_accumulate_model(text.substr(0, at)), .layers = std::string(text.substr(at + 1))};
}

bool OperationRule::applies_to(const OperationEntry& entry, std::string_view layer) const {
  return (operation == "*" || operation == entry.name) && matches_glob(layers, layer);
}

std::string to_string(const OperationRule& rule) {
  return rule.operation + (rule.layers == "*" ? "" : "@" + rule.layers);
}

std::vector<OperationRule> parse_operation_rules(OperationList list, std::string_view text) {
  std::vector<OperationRule> rules;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t at = std::min(item.find('@'), item.size());
    OperationRule rule{.list = list, .operation = std::string(item.substr(0, at))};
    if (at < item.size()) rule.layers = item.substr(at + 1);
    if (rule.layers.empty())
      throw InvalidArgument("'" + std::string(item) + "': give a glob of layers after @");
    if (rule.operation != "*") (void)find_in_table("operation", rule.operation, operation_table);
    rules.push_back(std::move(rule));
  }
  return rules;
}

void check_operation_rules(std::span<const OperationRule> rules) {
  for (auto rule = rules.begin(); rule != rules.end(); ++rule) {
    const auto again = std::find_if(rules.begin(), rule, [&](const OperationRule& earlier) {
      return to_string(earlier) == to_string(*rule);
    });
    if (again == rule) continue;
    const std::string first(name_of(again->list)), second(name_of(rule->list));
    throw InvalidArgument("'" + to_string(*rule) + "' is in " + first +
                          (first == second ? " twice" : " and in " + second) + "; give it once");
  }
}

OperationList PrecisionPolicy::list_of(OperationId operation, std::string_view layer) const {
  OperationList list = lists[operation.index];
  for (const OperationRule& rule : rules) {
    if (rule.applies_to(operation.entry(), layer)) list = rule.list;
  }
  return list;
}

Precision PrecisionPolicy::parameter_precision(OperationId operation, OperationList list) const {
  if (keep_batch_norm_fp32 && operation.index == OperationId("batch_norm").index) return Precision::fp32;
  const bool reduced = list == OperationList::allow || parameters == StoredParameters::reduced;
  return reduced ? Precision::reduced : Precision::fp32;
}

bool PrecisionPolicy::allows_all() const {
  const auto allows = [](OperationList list) { return list == OperationList::allow; };
  return std::all_of(lists.begin(), lists.end(), allows) &&
         std::all_of(rules.begin(), rules.end(),
                     [&](const OperationRule& rule) { return allows(rule.list); });
}

AccumulateModel PrecisionPolicy::reductions_in(std::string_view layer) const {
  return matches_glob(reductions.layers, layer) ? reductions.model : ScopedAccumulate{}.model;
}

AccumulateModel default_products(const PrecisionPolicy& policy) {
  if (!policy.operands.empty())
    return policy.products.format == fp32 ? policy.products : PrecisionPolicy{}.products;
  constexpr std::array multiplied{Role::weight, Role::activation, Role::activation_gradient};
  for (const FloatFormat& format : {fp16, bf16}) {
    const auto has_format = [&](Role role) { return policy.quantizer(role).format == format; };
    if (!std::all_of(multiplied.begin(), multiplied.end(), has_format)) continue;
    return {.format = format, .order = AccumulateOrder::tensor_core, .core = {TensorCoreGeneration::hopper}};
  }
  return PrecisionPolicy{}.products;
}

void check_operand_sums(const PrecisionPolicy& policy) {
  if (policy.operands.empty() || policy.products.format == fp32) return;
  throw InvalidArgument("order = " + to_string(policy.products) + ": it rounds operands to " +
                        to_string(policy.products.format) +
                        ", and the policy's operands have formats of their own; give fp32_fused, "
                        "fp32_sequential or fp32_chunked(N)");
}

DType native_storage(const Quantizer& quantizer) {
  if (quantizer.format == fp16) return DType::f16;
  return quantizer.format == bf16 ? DType::bf16 : DType::f32;
}

void check_native(const PrecisionPolicy& policy) {
  if (!policy.allows_all() || policy.keep_batch_norm_fp32) {
    throw InvalidArgument(
        "execution = native: operations of the policy are in several precisions, which is "
        "emulated only; give execution = emulated, or a policy without lists");
  }
  for (const Role role : {Role::weight, Role::activation, Role::activation_gradient, Role::weight_gradient}) {
    const Quantizer& quantizer = policy.quantizer(role);
    if (quantizer.format == fp32 || native_storage(quantizer) != DType::f32) continue;
    throw InvalidArgument("execution = native: no memory is of " + std::string(name_of(role)) + " = " +
                          to_string(quantizer) + "; give fp16, bf16 or fp32, or execution = emulated");
  }
  if (!policy.operands.empty()) {
    throw InvalidArgument("execution = native: operands = " + to_string(policy.operands) +
                          " are emulated only; give execution = emulated, or another policy");
  }
  if (policy.products.order != AccumulateOrder::cublas) return;
  const DType activation = native_storage(policy.quantizer(Role::activation));
  for (const Role role : {Role::weight, Role::activation_gradient}) {
    if (native_storage(policy.quantizer(role)) == activation) continue;
    throw InvalidArgument("order = " + to_string(policy.products) + ": " + std::string(name_of(role)) +
                          " and activation have memory of two kinds; give them one format, or another model");
  }
}

PrecisionPolicy tensors_in(const Quantizer& quantizer) {
  PrecisionPolicy policy = fp32_policy()
                               .with(Role::weight, quantizer)
                               .with(Role::activation, quantizer)
                               .with(Role::activation_gradient, quantizer)
                               .with(Role::weight_gradient, quantizer);
  policy.products = default_products(policy);
  return policy;
}

PrecisionPolicy fp32_policy() {
  return {};
}

PrecisionPolicy fp16_mixed_policy() {
  return with_tensors_in(fp16);
}

PrecisionPolicy fp16_no_master_policy() {
  return fp16_mixed_policy().with(Role::master_weight, {.format = fp16});
}

PrecisionPolicy fp16_pure_policy() {
  return fp16_no_master_policy().with(Role::optimizer_state, {.format = fp16});
}

PrecisionPolicy autocast_cuda_policy() {
  return autocast_policy(fp16, &OperationEntry::autocast_cuda);
}

PrecisionPolicy autocast_cpu_policy() {
  return autocast_policy(bf16, &OperationEntry::autocast_cpu);
}

PrecisionPolicy apex_o1_policy() {
  return autocast_policy(fp16, &OperationEntry::apex_o1);
}

PrecisionPolicy apex_o2_policy() {
  PrecisionPolicy policy = fp16_mixed_policy();
  policy.keep_batch_norm_fp32 = true;
  return policy;
}

PrecisionPolicy bf16_mixed_policy() {
  return with_tensors_in(bf16);
}

PrecisionPolicy bf16_no_master_policy() {
  return bf16_mixed_policy().with(Role::master_weight, {.format = bf16});
}

PrecisionPolicy bf16_stochastic_policy() {
  return bf16_mixed_policy().with(Role::master_weight, {.format = bf16, .rounding = Rounding::stochastic});
}

PrecisionPolicy bf16_kahan_policy() {
  PrecisionPolicy policy = bf16_no_master_policy();
  policy.weight_sum = WeightSum::kahan;
  return policy;
}

PrecisionPolicy bf16_two_components_policy() {
  PrecisionPolicy policy = bf16_no_master_policy();
  policy.weight_sum = WeightSum::two_components;
  return policy;
}

PrecisionPolicy NamedPolicy::make() const {
  PrecisionPolicy policy = base();
  if (operands.empty()) return policy;
  policy.operands = parse_operand_rules(operands);
  for (const char* head : recipe_heads) policy.operands.push_back({.layers = head});
  policy.products = parse_accumulate_model(products);
  return policy;
}

PrecisionPolicy in_fp32(PrecisionPolicy policy) {
  for (const Role role : {Role::weight, Role::activation, Role::activation_gradient, Role::weight_gradient})
    policy = policy.with(role, {});
  policy.products = PrecisionPolicy{}.products;
  policy.reductions = {};
  policy.operands.clear();
  return policy;
}

}  // namespace halfscope
