// Takes lists of names apart.
#include <halfscope/core/name_list.hpp>

namespace halfscope {

std::vector<std::string_view> split_at_commas(std::string_view list) {
  std::vector<std::string_view> texts;
  for (;;) {
    const std::size_t comma = list.find(',');
    texts.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return texts;
    list.remove_prefix(comma + 1);
  }
}

std::vector<std::string_view> names_in(std::string_view list, std::span<const std::string_view> known) {
  if (list == all_names) return {known.begin(), known.end()};
  return split_at_commas(list);
}

}  // namespace halfscope
