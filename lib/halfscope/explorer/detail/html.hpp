// Text in HTML, and templates that are filled in.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace halfscope::detail {

/// Text as HTML shows it, control characters and bytes that are no text as escapes.
[[nodiscard]] std::string html(std::string_view text);

/// `text` with each "@KEY@" replaced, in one pass: a value that looks like a key stays.
[[nodiscard]] std::string filled(std::string_view text,
                                 const std::map<std::string_view, std::string>& values);

}  // namespace halfscope::detail
