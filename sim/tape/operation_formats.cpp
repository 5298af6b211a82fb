// The formats that an operation's list gives it.
#include "sim/tape/operation_formats.hpp"

namespace halfscope {
namespace {

/// The operands of the forward product, if they have formats of their own.
std::string operands_text(const PrecisionPolicy& policy, OperationId operation, const std::string& roles) {
  const LayerOperands operands = operands_of(policy.operands, operation, "");
  if (operands.empty()) return "";
  const auto text = [&](OperandSide side) {
    const auto& format = operands[{ProductKind::forward, side}];
    return format ? to_string(*format) : roles;
  };
  return text(OperandSide::left) + " x " + text(OperandSide::right) + " in ";
}

}  // namespace

OperationFormats operation_formats(const PrecisionPolicy& policy, OperationId operation) {
  const OperationEntry& entry = operation.entry();
  const OperationList list = policy.list_of(operation, "");
  if (list == OperationList::refuse) return {"refused", "", "", ""};
  const bool reduced = list != OperationList::deny;
  const std::string activation = reduced ? to_string(policy.quantizer(Role::activation)) : "fp32";
  OperationFormats formats{.inputs = list == OperationList::infer ? "widest" : activation,
                           .parameters = "",
                           .arithmetic = "fp32",
                           .output = list == OperationList::infer ? "widest" : activation};
  if (entry.kind == OperationKind::loss) formats.output = "fp32";
  if (entry.multiplies) {
    const PrecisionPolicy own = reduced ? policy : in_fp32(policy);
    formats.arithmetic = operands_text(own, operation, activation) + to_string(own.products);
  }
  if (entry.has_parameters) {
    const bool rounds = policy.parameter_precision(operation, list) == Precision::reduced;
    formats.parameters = rounds ? to_string(policy.quantizer(Role::weight)) : "fp32";
  }
  return formats;
}

std::string to_string(const OperationFormats& formats) {
  if (formats.arithmetic.empty()) return formats.inputs;
  const bool differs = !formats.parameters.empty() && formats.parameters != formats.inputs;
  return formats.inputs + " -> " + formats.arithmetic + " -> " + formats.output +
         (differs ? ", parameters " + formats.parameters : "");
}

}  // namespace halfscope
