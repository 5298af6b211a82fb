// Rules of operands: which of them applies to a layer.
#include <halfscope/policy/operands.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/policy/detail/globs.hpp>

namespace halfscope {
namespace {

bool has_transform(const LayerOperands::Format& format) {
  return format && format->transform == OperandTransform::hadamard;
}

}  // namespace

bool OperandRule::applies_to(const OperationEntry& entry, std::string_view layer) const {
  const bool known = std::ranges::count(operand_operations, entry.name) > 0;
  const bool chosen = operation.empty() ? entry.has_parameters : operation == entry.name;
  return known && chosen && matches_glob(layers, layer);
}

LayerOperands operands_of(std::span<const OperandRule> rules, OperationId operation, std::string_view layer) {
  LayerOperands operands;
  for (const OperandRule& rule : rules) {
    if (!rule.applies_to(operation.entry(), layer)) continue;
    for (const OperandPlace& place : operand_places)
      if (rule.applies_to(place)) operands[place] = rule.format;
  }
  for (const OperandPlace& left : operand_places) {
    if (left.side != OperandSide::left) continue;
    const OperandPlace right{left.product, OperandSide::right};
    if (has_transform(operands[left]) == has_transform(operands[right])) continue;
    throw InvalidArgument(
        fmt::format("layer {}: {} has Hadamard's transform and {} has not; give both or none", layer,
                    to_string(has_transform(operands[left]) ? left : right),
                    to_string(has_transform(operands[left]) ? right : left)));
  }
  return operands;
}

}  // namespace halfscope
