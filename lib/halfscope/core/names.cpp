// Edit distance and the message that offers the nearest valid name.
#include <halfscope/core/names.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <compare>

namespace halfscope {
namespace {

constexpr std::size_t telling = 3;  // letters; fewer begin many names, and stand in many, by chance

bool is_decimal(char letter) {
  return letter >= '0' && letter <= '9';
}

/// A digit in the place of another makes another number, which is no misspelling.
std::size_t cost_of_replacing(char letter, char other) {
  if (letter == other) return 0;
  return is_decimal(letter) && is_decimal(other) ? 2 : 1;
}

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
      const std::size_t replaced = cell(i - 1, j - 1) + cost_of_replacing(a[i - 1], b[j - 1]);
      cell(i, j) = std::min({cell(i - 1, j) + 1, cell(i, j - 1) + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cell(i, j) = std::min(cell(i, j), cell(i - 2, j - 2) + 1);
      }
    }
  }
  return table.back();
}

/// How a name differs from what is given; the smaller, the nearer.
struct Misses {
  bool does_not_begin = false;  ///< with it
  std::size_t edits = 0;

  friend auto operator<=>(const Misses&, const Misses&) = default;
};

Misses misses(std::string_view given, std::string_view name) {
  return {given.size() < telling || !name.starts_with(given), edit_distance(given, name)};
}

/// Whether the name has all of it, or a misspelling may be what is between them: at most one letter of three.
bool is_near(std::string_view given, std::string_view name) {
  const bool is_part = given.size() >= telling && name.find(given) != name.npos;
  const std::size_t edits = edit_distance(given, name), longer = std::max(given.size(), name.size());
  return is_part || (edits <= std::max<std::size_t>(1, longer / 3) && edits < longer);
}

}  // namespace

std::vector<std::string_view> nearest_names(std::string_view given, std::span<const std::string_view> names) {
  std::vector<std::string_view> nearest;
  for (const std::string_view name : names) {
    if (!is_near(given, name)) continue;
    const auto order =
        nearest.empty() ? std::strong_ordering::less : misses(given, name) <=> misses(given, nearest[0]);
    if (order < 0) nearest.clear();
    if (order <= 0) nearest.push_back(name);
  }
  return nearest;
}

std::string did_you_mean(std::string_view given, std::span<const std::string_view> names) {
  const std::vector<std::string_view> nearest = nearest_names(given, names);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", fmt::join(nearest, "' or '"));
}

std::string unknown_name(std::string_view kind, std::string_view given,
                         std::span<const std::string_view> names) {
  if (names.empty()) return fmt::format("unknown {} '{}'; there is none", kind, given);
  return fmt::format("unknown {} '{}'{} (one of: {})", kind, given, did_you_mean(given, names),
                     fmt::join(names, ", "));
}

}  // namespace halfscope
