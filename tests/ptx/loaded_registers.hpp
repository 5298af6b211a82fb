// Registers that depend on numbers in memory, as opposed to indices, which depend on threads and parameters.
#pragma once

#include <set>
#include <span>
#include <string_view>

#include "tests/ptx/instruction_words.hpp"

namespace halfscope::ptx {

/// Registers that hold a number loaded from memory other than the parameters, or one computed from such a
/// number.
[[nodiscard]] std::set<std::string_view> loaded_registers(std::span<const InstructionWords> instructions);

}  // namespace halfscope::ptx
