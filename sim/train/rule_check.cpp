// Rules beside the layers that they could mean.
#include "sim/train/rule_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace halfscope {
namespace {

bool applies(const OperationRule& rule, const TapeEntry& entry) {
  return entry.operation && rule.applies_to(entry.operation->entry(), entry.name);
}

/// Names of the layers with the rule's operation.
std::vector<std::string_view> layers_with(const OperationRule& rule, std::span<const TapeEntry> tape) {
  const OperationRule anywhere{.operation = rule.operation};
  std::vector<std::string_view> layers;
  for (const TapeEntry& entry : tape) {
    if (applies(anywhere, entry)) layers.push_back(entry.name);
  }
  return layers;
}

InvalidArgument refusal(const OperationRule& rule, const std::vector<std::string_view>& layers) {
  const std::string given = fmt::format("{} = {}: ", name_of(rule.list), to_string(rule));
  if (layers.empty()) return InvalidArgument(given + "the model has no such operation");
  return InvalidArgument(fmt::format("{}no layer is called that; the nearest is '{}'", given,
                                     nearest_name(rule.layers, layers)));
}

}  // namespace

void check_rules_apply(std::span<const OperationRule> rules, std::span<const TapeEntry> tape) {
  for (const OperationRule& rule : rules) {
    const auto fits = [&](const TapeEntry& entry) { return applies(rule, entry); };
    if (std::any_of(tape.begin(), tape.end(), fits)) continue;
    throw refusal(rule, layers_with(rule, tape));
  }
}

}  // namespace halfscope
