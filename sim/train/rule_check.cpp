// Rules beside the layers that they could mean.
#include "sim/train/rule_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace halfscope {
namespace {

template <typename Rule>
bool applies(const Rule& rule, const TapeEntry& entry) {
  return entry.operation && rule.applies_to(entry.operation->entry(), entry.name);
}

/// Names of the layers that the rule would apply to whatever they are called.
template <typename Rule>
std::vector<std::string_view> layers_with(const Rule& rule, std::span<const TapeEntry> tape) {
  const Rule anywhere{.operation = rule.operation};
  std::vector<std::string_view> layers;
  for (const TapeEntry& entry : tape) {
    if (applies(anywhere, entry)) layers.push_back(entry.name);
  }
  return layers;
}

std::string_view setting_of(const OperationRule& rule) {
  return name_of(rule.list);
}

std::string_view setting_of(const OperandRule& /*rule*/) {
  return "operands";
}

template <typename Rule>
InvalidArgument refusal(const Rule& rule, const std::vector<std::string_view>& layers) {
  const std::string given = fmt::format("{} = {}: ", setting_of(rule), to_string(rule));
  if (layers.empty()) return InvalidArgument(given + "the model has no such operation");
  return InvalidArgument(fmt::format("{}no layer is called that{} (one of: {})", given,
                                     did_you_mean(rule.layers, layers), fmt::join(layers, ", ")));
}

template <typename Rule>
void check_each(std::span<const Rule> rules, std::span<const TapeEntry> tape) {
  for (const Rule& rule : rules) {
    const auto fits = [&](const TapeEntry& entry) { return applies(rule, entry); };
    if (std::any_of(tape.begin(), tape.end(), fits)) continue;
    throw refusal(rule, layers_with(rule, tape));
  }
}

}  // namespace

void check_rules_apply(std::span<const OperationRule> rules, std::span<const TapeEntry> tape) {
  check_each(rules, tape);
}

void check_rules_apply(std::span<const OperandRule> rules, std::span<const TapeEntry> tape) {
  check_each(rules, tape);
}

}  // namespace halfscope
