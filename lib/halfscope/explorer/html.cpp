// Escapes of HTML, and keys of templates.
#include <halfscope/explorer/detail/html.hpp>

#include <halfscope/core/escape.hpp>

namespace halfscope::detail {

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

}  // namespace halfscope::detail
