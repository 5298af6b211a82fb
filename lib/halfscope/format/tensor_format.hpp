// A format of a tensor by name: one scale for each block, or none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <halfscope/format/block_format.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

using TensorFormat = std::variant<Quantizer, BlockFormat>;

/// The name that parse_tensor_format reads.
[[nodiscard]] std::string to_string(const TensorFormat& format);
/// The name of a quantizer or of a block format. Throws InvalidArgument as parse_quantizer and
/// parse_block_format do.
[[nodiscard]] TensorFormat parse_tensor_format(std::string_view text);

/// Appends `format` where it is none of `formats`.
void append_new(const TensorFormat& format, std::vector<TensorFormat>& formats);

/// The format of the elements.
[[nodiscard]] const FloatFormat& element_format(const TensorFormat& format);
/// The largest finite number of an element.
[[nodiscard]] float largest_element(const TensorFormat& format);

/// Bits that so many elements in so many blocks take, with the scales and the tensor's scale; elements that
/// fill a last block up are not stored.
[[nodiscard]] std::int64_t stored_bits(const TensorFormat& format, std::int64_t elements,
                                       std::int64_t blocks);

}  // namespace halfscope
