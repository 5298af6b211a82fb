// Formats as the command line takes them.
#pragma once

#include <string_view>

#include <halfscope/format/quantizer.hpp>
#include <halfscope/format/tensor_format.hpp>

namespace halfscope {

/// parse_quantizer, with a note on stderr where OCP gives the bits of the format another meaning.
[[nodiscard]] Quantizer parse_quantizer_option(std::string_view text);

/// The format of counted casts, "FORMAT[/OVERFLOW]". Counts are the same for both overflow policies; a note
/// on stderr says what they count where numbers saturate. Throws InvalidArgument where `text` has another
/// rounding than to nearest even, which is what is counted.
[[nodiscard]] FloatFormat parse_counted_format(std::string_view text);

/// parse_format, with a note on stderr where OCP gives the bits of `name` another meaning.
[[nodiscard]] FloatFormat parse_format_option(std::string_view name);

/// parse_tensor_format, with the same note about its elements.
[[nodiscard]] TensorFormat parse_tensor_format_option(std::string_view name);

}  // namespace halfscope
