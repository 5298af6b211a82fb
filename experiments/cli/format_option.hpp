// A format as the command line takes it.
#pragma once

#include <string_view>

#include <halfscope/format/quantizer.hpp>

namespace halfscope {

/// parse_quantizer, with a note on stderr where OCP gives the bits of the format another meaning.
[[nodiscard]] Quantizer parse_quantizer_option(std::string_view text);

/// The format of counted casts, "FORMAT[/OVERFLOW]". Counts are the same for both overflow policies; a note
/// on stderr says what they count where numbers saturate. Throws InvalidArgument where `text` has another
/// rounding than to nearest even, which is what is counted.
[[nodiscard]] FloatFormat parse_counted_format(std::string_view text);

}  // namespace halfscope
