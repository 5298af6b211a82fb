// Takes lists of names apart.
#include <halfscope/core/name_list.hpp>

namespace halfscope {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split_outside_parentheses(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] != separator || depth != 0) continue;
    parts.push_back(trimmed(text.substr(start, i - start)));
    start = i + 1;
  }
  parts.push_back(trimmed(text.substr(start)));
  return parts;
}

std::vector<std::string_view> split_at_commas(std::string_view list) {
  return split(list, ',');
}

std::vector<std::string_view> names_in(std::string_view list, std::span<const std::string_view> known) {
  if (list == all_names) return {known.begin(), known.end()};
  return split_at_commas(list);
}

}  // namespace halfscope
