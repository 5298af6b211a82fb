// Names: look-ups, and the message of those that fail.
#include <halfscope/core/names.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <halfscope/format/block_format.hpp>
#include <halfscope/format/catalogue.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::names_test {
namespace {

using Names = std::vector<std::string_view>;

TEST_CASE("the nearest name has the fewest edits", "[names]") {
  const std::array<std::string_view, 4> names{"nearest_even", "toward_zero", "up", "down"};
  CHECK(nearest_names("nearest", names) == Names{"nearest_even"});
  CHECK(nearest_names("towards_zero", names) == Names{"toward_zero"});
  CHECK(nearest_names("dwon", names) == Names{"down"});
  CHECK(nearest_names("up", names) == Names{"up"});
  CHECK(nearest_names("u", names) == Names{"up"});
  CHECK(nearest_names("x", std::span<const std::string_view>{}).empty());
}

TEST_CASE("a name that begins with what is given is nearer than any other", "[names]") {
  const std::array<std::string_view, 4> names{"margin", "backoff_factor", "growth_interval", "growth_factor"};
  CHECK(nearest_names("growth", names) == Names{"growth_factor"});
  CHECK(nearest_names("back", names) == Names{"backoff_factor"});
  CHECK(nearest_names("factor", names) == Names{"growth_factor"});
}

TEST_CASE("names that are equally near are all told", "[names]") {
  const std::array<std::string_view, 3> names{"fp16", "bf16", "fp32"};
  CHECK(did_you_mean("f16", names) == "; did you mean 'fp16' or 'bf16'?");
}

TEST_CASE("no name is near to what no misspelling makes of it", "[names]") {
  const std::array<std::string_view, 4> names{"nearest_even", "toward_zero", "up", "fp32"};
  for (const std::string_view given : {"", "x", "ba", "stochastic", "int8", "fp12", "fp64", "zero_even"})
    CHECK(did_you_mean(given, names).empty());
}

/// One letter less, one twice, and two neighbours swapped, at each place.
std::vector<std::string> misspellings(const std::string& name) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < name.size(); ++i) {
    words.push_back(name.substr(0, i) + name.substr(i + 1));
    words.push_back(name.substr(0, i) + name[i] + name.substr(i));
    if (i + 1 < name.size()) words.push_back(name.substr(0, i) + name[i + 1] + name[i] + name.substr(i + 2));
  }
  return words;
}

Names names_of_formats() {
  Names names = table_names(format_catalogue);
  for (const FormatAlias& entry : format_aliases) names.push_back(entry.alias);
  return names;
}

void check_misspellings(const Names& names) {
  for (const std::string_view name : names) {
    for (const std::string& word : misspellings(std::string(name))) {
      const auto begins = [&](std::string_view other) { return other != name && other.starts_with(word); };
      if (std::ranges::count(names, word) > 0 || std::ranges::any_of(names, begins)) continue;
      CAPTURE(name, word);
      CHECK(std::ranges::count(nearest_names(word, names), name) == 1);
    }
  }
}

TEST_CASE("a misspelt format is told by its name", "[names]") {
  check_misspellings(names_of_formats());
  check_misspellings(table_names(block_formats));
  check_misspellings({enum_names<Rounding>.begin(), enum_names<Rounding>.end()});
}

TEST_CASE("a format that is none of the known ones gets no other in its place", "[names]") {
  for (const std::string name :
       {"int4", "int8", "uint8", "mxint8", "fp12", "fp64", "half", "tf19", "posit", "x"}) {
    const std::string message = message_of<InvalidArgument>([&] { (void)parse_format(name); });
    CAPTURE(message);
    CHECK(message.find("did you mean") == message.npos);
    check_says(message, {"unknown format '" + name + "'", "halfscope list formats"});
  }
}

TEST_CASE("enumerators are found by their names", "[names]") {
  for (std::size_t i = 0; i < enum_names<Rounding>.size(); ++i) {
    const auto rounding = static_cast<Rounding>(i);
    CHECK(parse_enum<Rounding>("rounding", name_of(rounding)) == rounding);
  }
  CHECK(name_of(Rounding::stochastic) == "stochastic");
  CHECK(name_of(Overflow::saturate) == "saturate");
  check_says(message_of<InvalidArgument>([] { (void)parse_enum<Rounding>("rounding", "nearest_evn"); }),
             {"unknown rounding 'nearest_evn'", "did you mean 'nearest_even'?", "to_odd"});
}

TEST_CASE("table entries are found by their names", "[names]") {
  CHECK(find_in_table("format", "bf16", format_catalogue).format == bf16);
  check_says(message_of<InvalidArgument>([] { (void)find_in_table("format", "bf61", format_catalogue); }),
             {"unknown format 'bf61'", "did you mean 'bf16'?", "fp8_e4m3"});
}

}  // namespace
}  // namespace halfscope::names_test
