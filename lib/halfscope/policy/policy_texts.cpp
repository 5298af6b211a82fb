// Checks of texts, a line for each key, and the policy that they make.
#include <halfscope/policy/policy_texts.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/kernel/gemm/gemm.hpp>

namespace halfscope {
namespace {

void check_name(const std::string& text) {
  (void)named_policy(text);
}

void check_role(const std::string& text) {
  if (!text.empty()) (void)parse_quantizer(text);
}

void check_optimizer_state(const std::string& text) {
  check_role(text);
  if (text.empty() || parse_quantizer(text).rounding != Rounding::stochastic) return;
  throw InvalidArgument("the update's arithmetic cannot be rounded stochastically; choose another rounding");
}

void check_order(const std::string& text) {
  if (!text.empty()) check_product_model(parse_accumulate_model(text));
}

void check_sum_order(const std::string& text) {
  if (!text.empty()) check_reduction_model(parse_scoped_accumulate(text).model);
}

void check_operands(const std::string& text) {
  (void)parse_operand_rules(text);
}

/// Calls visit(key, text, check) for each text: the one list of keys.
template <typename Texts, typename Visit>
void visit_texts(Texts& texts, const Visit& visit) {
  visit("policy", texts.policy, check_name);
  for (std::size_t role = 0; role < texts.roles.size(); ++role) {
    const bool is_state = static_cast<Role>(role) == Role::optimizer_state;
    visit(enum_names<Role>[role], texts.roles[role], is_state ? check_optimizer_state : check_role);
  }
  visit("order", texts.order, check_order);
  visit("sum_order", texts.sum_order, check_sum_order);
  visit("operands", texts.operands, check_operands);
}

/// Rules of the policy, then `added`; the last of equal ones, so that the texts of a policy can be given to
/// another.
std::vector<OperandRule> joined(std::vector<OperandRule> all, const std::vector<OperandRule>& added) {
  all.insert(all.end(), added.begin(), added.end());
  std::vector<OperandRule> rules;
  for (auto rule = all.begin(); rule != all.end(); ++rule)
    if (std::find(rule + 1, all.end(), *rule) == all.end()) rules.push_back(*rule);
  return rules;
}

}  // namespace

std::vector<std::string_view> policy_keys() {
  std::vector<std::string_view> keys;
  const PolicyTexts texts;
  visit_texts(texts, [&](std::string_view key, const std::string&, auto) { keys.push_back(key); });
  return keys;
}

void check_policy_text(std::string_view key, const std::string& text) {
  const PolicyTexts texts;
  visit_texts(texts, [&](std::string_view name, const std::string&, auto check) {
    if (name == key) check(text);
  });
}

InvalidArgument refused_text(std::string_view key, std::string_view text, std::string_view why) {
  return InvalidArgument(fmt::format("{} = '{}': {}", key, text, why));
}

void set_policy_text(PolicyTexts& texts, std::string_view key, const std::string& text) {
  const std::vector<std::string_view> keys = policy_keys();
  if (std::ranges::find(keys, key) == keys.end()) throw InvalidArgument(unknown_name("key", key, keys));
  try {
    check_policy_text(key, text);
  } catch (const InvalidArgument& error) {
    throw refused_text(key, text, error.what());
  }
  visit_texts(texts, [&](std::string_view name, std::string& member, auto) {
    if (name == key) member = text;
  });
}

PrecisionPolicy named_policy(const std::string& name) {
  const auto* const entry = std::ranges::find(policy_table, name, &NamedPolicy::name);
  if (entry != policy_table.end()) return entry->make();
  try {
    return tensors_in(parse_quantizer(name));
  } catch (const InvalidArgument&) {
    throw InvalidArgument(unknown_name("policy", name, table_names(policy_table)) +
                          "; a format of the network's tensors, such as bf16, is a policy too");
  }
}

PrecisionPolicy parse_policy(const PolicyTexts& texts) {
  PrecisionPolicy policy = named_policy(texts.policy);
  for (std::size_t role = 0; role < texts.roles.size(); ++role)
    if (!texts.roles[role].empty())
      policy = policy.with(static_cast<Role>(role), parse_quantizer(texts.roles[role]));
  policy.operands = joined(std::move(policy.operands), parse_operand_rules(texts.operands));
  policy.products = texts.order.empty() ? default_products(policy) : parse_accumulate_model(texts.order);
  if (!texts.sum_order.empty()) policy.reductions = parse_scoped_accumulate(texts.sum_order);
  check_operand_sums(policy);
  return policy;
}

}  // namespace halfscope
