// Formats of an operation under a policy, as `halfscope list operations` prints them.
#pragma once

#include <string>

#include <halfscope/policy/policy.hpp>

namespace halfscope {

struct OperationFormats {
  /// To which they are cast; "widest" where they stay, and the widest decides; "refused", all else empty, of
  /// an operation that the policy does not take.
  std::string inputs;
  std::string parameters;  ///< in which they are read; empty of an operation without any
  std::string arithmetic;  ///< model of the products; "fp32" of an operation without any
  std::string output;

  [[nodiscard]] bool operator==(const OperationFormats&) const = default;
};

/// In a layer that no rule of the policy names.
[[nodiscard]] OperationFormats operation_formats(const PrecisionPolicy& policy, OperationId operation);

/// "fp16 -> tensor_core(hopper) -> fp16, parameters fp32": the parameters where their format is not the
/// inputs'.
[[nodiscard]] std::string to_string(const OperationFormats& formats);

}  // namespace halfscope
