// An instruction's line as words: its opcode and the registers and numbers that are its operands.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace halfscope::ptx {

struct InstructionWords {
  std::string_view opcode;                 ///< empty where the line has no instruction
  std::vector<std::string_view> operands;  ///< a vector's one by one
  std::size_t results = 0;  ///< operands that may be written: the first, or those first in braces
  bool guarded = false;
  bool ends_block = false;  ///< a label or a branch
};

/// Words of a line that nvcc wrote.
[[nodiscard]] InstructionWords words_of(std::string_view line);

}  // namespace halfscope::ptx
