// Names and words of others in one line of a terminal or a message: nothing in them is taken for a command.
#pragma once

#include <string>
#include <string_view>

namespace halfscope {

/// `text` with everything written as an escape that a terminal would act on or that is no text: control
/// characters ("\n", "\x1b"), line separators and changes of the writing direction ("\u202e"), and bytes that
/// are not UTF-8 ("\xff"). Every other character, a backslash too, stays what it is.
[[nodiscard]] std::string escaped(std::string_view text);

/// `text` with only the bytes that are not UTF-8 written as escapes, "\xff": names that differ in them stay
/// different in JSON, which holds nothing but UTF-8.
[[nodiscard]] std::string escaped_bytes(std::string_view text);

}  // namespace halfscope
