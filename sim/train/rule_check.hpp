// Whether the rules of a policy's operation lists apply to the layers of a model.
#pragma once

#include <span>

#include "sim/tape/tape.hpp"

namespace halfscope {

/// Throws InvalidArgument for a rule that applies to no operation on the tapes, with the nearest layer's
/// name.
void check_rules_apply(std::span<const OperationRule> rules, std::span<const TapeEntry> tape);
void check_rules_apply(std::span<const OperandRule> rules, std::span<const TapeEntry> tape);

}  // namespace halfscope
