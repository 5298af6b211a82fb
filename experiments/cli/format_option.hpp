// A format as the command line takes it.
#pragma once

#include <string_view>

#include <halfscope/format/quantizer.hpp>

namespace halfscope {

/// parse_format, with a note on stderr where OCP gives the bits of `name` another meaning.
[[nodiscard]] FloatFormat parse_format_option(std::string_view name);

}  // namespace halfscope
