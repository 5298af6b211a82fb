// `halfscope calc dot` on a block-scaled tensor core: rows of numbers in, brought to block formats, and their
// product out.
#pragma once

#include <string>
#include <string_view>

#include <halfscope/core/random.hpp>

#include "experiments/cli/calc/calc_dot.hpp"

namespace halfscope {

/// Whether --order names a unit of BlockScaledKind.
[[nodiscard]] bool is_block_scaled_unit(std::string_view model);

/// The unit for the formats of --input, "nvfp4" or "FORMAT_OF_A,FORMAT_OF_B"; words are FP32. Throws
/// InvalidArgument for formats that are missing or that the unit does not take, and for --output.
[[nodiscard]] DotProduct parse_block_dot(const DotOptions& options);

/// The unit's sum from c on, times both tensor scales in FP32. a and b are rows with tensor scales of their
/// own, as `halfscope.matmul` has them. The flags are those of `evaluate_dot`, for the numbers that codes and
/// scales stand for: 1 where the sum or a product with a tensor scale is rounded.
[[nodiscard]] CalcAnswer evaluate_block_dot(Words words, const DotProduct& dot, const RandomStream& stream);

/// A line for each of a and b: the tensor's scale, the scales of the blocks, the codes of the elements.
[[nodiscard]] std::string explained_block_dot(Words words, const DotProduct& dot, const RandomStream& stream);

}  // namespace halfscope
