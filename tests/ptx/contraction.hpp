// Contraction of products and sums into fma, as nvcc does it with -fmad=true.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/ptx/instruction_words.hpp"

namespace halfscope::ptx {

/// Lines by their place among `lines`, and the fma that stands in place of each: sums and differences of
/// single precision one of whose terms is a product of the same basic block.
[[nodiscard]] std::vector<std::pair<std::size_t, std::string>> contractions(
    std::span<const InstructionWords> lines);

}  // namespace halfscope::ptx
