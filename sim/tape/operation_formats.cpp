// The formats that an operation's list gives it.
#include "sim/tape/operation_formats.hpp"

namespace halfscope {

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
  if (entry.multiplies) formats.arithmetic = to_string((reduced ? policy : in_fp32(policy)).products);
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
