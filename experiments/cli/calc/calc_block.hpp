// `halfscope calc round` to a block format: the values of a block in, its scale and the codes of its elements
// out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/format/block_format.hpp>

#include "experiments/cli/calc/calc_number.hpp"

namespace halfscope {

struct BlockRequest {
  BlockFormat format;
  FloatFormat from{};                  ///< format of the bit patterns among the values
  std::optional<float> tensor_amax{};  ///< the tensor's largest magnitude; without it the block is the tensor
  std::uint64_t seed = 0;
};

/// --tensor-amax, a decimal or FP32 bits. Throws InvalidArgument for a format without a tensor scale and for
/// what is no magnitude.
[[nodiscard]] float parse_tensor_amax(std::string_view text, const BlockFormat& format);

/// Appends "0x7f 0x2 0x4\n": the code of the block's scale, then one for each value; in front the tensor's
/// scale in FP32 bits where the format has one. `index` says which random bits are drawn. Throws
/// InvalidArgument for values that do not fill rows of one block at most.
void append_block(std::string& out, const BlockRequest& request, std::span<const std::string_view> words,
                  std::uint64_t index);
/// The same in words, with a line for each value.
[[nodiscard]] std::string explained_block(const BlockRequest& request,
                                          std::span<const std::string_view> words, std::uint64_t index);

}  // namespace halfscope
