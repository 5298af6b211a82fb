// Edit distance and the message that offers the nearest valid name.
#include <halfscope/core/names.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace halfscope {
namespace {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * width);  // [i, j]: of the first i letters of a and j of b
  const auto cell = [&](std::size_t i, std::size_t j) -> std::size_t& { return table[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cell(i, j) = i + j;
        continue;
      }
      const std::size_t replaced = cell(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      cell(i, j) = std::min({cell(i - 1, j) + 1, cell(i, j - 1) + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cell(i, j) = std::min(cell(i, j), cell(i - 2, j - 2) + 1);
      }
    }
  }
  return table.back();
}

}  // namespace

std::string_view nearest_name(std::string_view given, std::span<const std::string_view> names) {
  constexpr std::size_t telling = 3;  // letters; fewer begin many names by chance
  const auto misses = [&](std::string_view name) {
    return std::pair(given.size() < telling || !name.starts_with(given), edit_distance(given, name));
  };
  const auto closer = [&](std::string_view a, std::string_view b) { return misses(a) < misses(b); };
  const auto nearest = std::min_element(names.begin(), names.end(), closer);
  return nearest == names.end() ? std::string_view{} : *nearest;
}

std::string unknown_name(std::string_view kind, std::string_view given,
                         std::span<const std::string_view> names) {
  if (names.empty()) return fmt::format("unknown {} '{}'; there is none", kind, given);
  return fmt::format("unknown {} '{}'; did you mean '{}'? (one of: {})", kind, given,
                     nearest_name(given, names), fmt::join(names, ", "));
}

}  // namespace halfscope
