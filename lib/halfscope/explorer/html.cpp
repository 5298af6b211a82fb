// Escapes of HTML, and the template of a page.
#include <halfscope/explorer/detail/html.hpp>

#include <map>
#include <utility>

#include <halfscope/core/escape.hpp>
#include <halfscope/explorer/detail/assets.hpp>

namespace halfscope::detail {
namespace {

/// `text` with each "@KEY@" replaced, in one pass: a value that looks like a key stays.
std::string filled(std::string_view text, const std::map<std::string_view, std::string>& values) {
  std::string result;
  while (true) {
    const std::size_t begin = text.find('@');
    result += text.substr(0, begin);
    if (begin == std::string_view::npos) return result;
    const std::size_t end = text.find('@', begin + 1);
    const auto value =
        end == std::string_view::npos ? values.end() : values.find(text.substr(begin + 1, end - begin - 1));
    if (value == values.end()) {
      result += '@';
      text.remove_prefix(begin + 1);
      continue;
    }
    result += value->second;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string html(std::string_view text) {
  std::string result;
  for (const char letter : escaped(text)) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

std::string explorer_document(std::string_view title, PageParts parts) {
  return filled(assets::page, {{"title", html(title)},
                               {"style", std::string(assets::style)},
                               {"script", std::string(assets::script)},
                               {"legend", std::string(parts.legend)},
                               {"answer", std::move(parts.answer)},
                               {"table", std::move(parts.table)},
                               {"data", std::move(parts.data)}});
}

}  // namespace halfscope::detail
