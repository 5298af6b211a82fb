// Takes placeholders out of texts.
#include "experiments/definition/sentence.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

struct Comparator {
  std::string_view sign;
  Placeholder::Kind kind;
};
constexpr std::array comparators{
    Comparator{" | ", Placeholder::Kind::words}, Comparator{" / ", Placeholder::Kind::ratio},
    Comparator{" - ", Placeholder::Kind::difference}, Comparator{" % ", Placeholder::Kind::shortfall}};

/// The digits behind a column's last colon; -1 without one.
int take_digits(std::string_view& column) {
  const std::size_t colon = column.rfind(':');
  if (colon == std::string_view::npos) return -1;
  const std::string_view text = column.substr(colon + 1);
  int digits = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), digits);
  if (text.size() != 1 || error != std::errc{} || rest != text.data() + text.size())
    throw InvalidArgument(fmt::format("{{{}}}: behind the colon give digits from 0 to 9", column));
  column = column.substr(0, colon);
  return digits;
}

}  // namespace

std::vector<std::string_view> placeholders(std::string_view text) {
  std::vector<std::string_view> found;
  while (true) {
    const std::size_t open = text.find_first_of("{}");
    if (open == std::string_view::npos) return found;
    const std::size_t close = text.find_first_of("{}", open + 1);
    if (text[open] == '}' || close == std::string_view::npos || text[close] == '{')
      throw InvalidArgument(fmt::format("'{}': a brace without its other half", text));
    found.push_back(text.substr(open + 1, close - open - 1));
    text = text.substr(close + 1);
  }
}

Placeholder parse_placeholder(std::string_view text) {
  for (const Comparator& comparator : comparators) {
    const std::size_t place = text.find(comparator.sign);
    if (place == std::string_view::npos) continue;
    return {comparator.kind, text.substr(0, place), text.substr(place + comparator.sign.size())};
  }
  if (const std::size_t colon = text.find(": "); colon != std::string_view::npos)
    return {Placeholder::Kind::finding, text.substr(0, colon), text.substr(colon + 2)};
  const int digits = take_digits(text);
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return {Placeholder::Kind::finding, text};
  return {Placeholder::Kind::column, text.substr(0, dot), text.substr(dot + 1), digits};
}

}  // namespace halfscope
