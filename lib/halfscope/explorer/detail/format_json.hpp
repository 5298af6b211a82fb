// A format as the explorers' scripts read it.
#pragma once

#include <halfscope/format/float_format.hpp>
#include <halfscope/io/json/json_lines.hpp>

namespace halfscope::detail {

/// Name, label, and the exponents at which numbers are flushed, become normal and overflow.
[[nodiscard]] Json format_json(const FloatFormat& format);

/// JSON on one line that no text in it leads out of a script element: "<" is written by its number.
[[nodiscard]] std::string script_json(const Json& json);

}  // namespace halfscope::detail
