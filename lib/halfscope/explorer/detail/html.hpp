// Text in HTML, and the page of an explorer.
#pragma once

#include <string>
#include <string_view>

namespace halfscope::detail {

/// Text as HTML shows it, control characters and bytes that are no text as escapes.
[[nodiscard]] std::string html(std::string_view text);

/// Parts of a page in which explorers differ, as HTML but for `data`, which is JSON.
struct PageParts {
  std::string_view legend;
  std::string answer, table, data;
};
/// The page of an explorer, with its style and script; `title` is text, not HTML.
[[nodiscard]] std::string explorer_document(std::string_view title, PageParts parts);

}  // namespace halfscope::detail
