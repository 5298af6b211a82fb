// Edit distance and the message that offers the nearest valid name.
#include <halfscope/core/names.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace halfscope {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest_name(std::string_view given, std::span<const std::string_view> names) {
  const auto closer = [&](std::string_view a, std::string_view b) {
    return edit_distance(given, a) < edit_distance(given, b);
  };
  const auto nearest = std::min_element(names.begin(), names.end(), closer);
  return nearest == names.end() ? std::string_view{} : *nearest;
}

std::string unknown_name(std::string_view kind, std::string_view given,
                         std::span<const std::string_view> names) {
  return fmt::format("unknown {} '{}'; did you mean '{}'? (one of: {})", kind, given,
                     nearest_name(given, names), fmt::join(names, ", "));
}

}  // namespace halfscope
