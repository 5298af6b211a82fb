// Names: look-ups, and the message of those that fail.
#include <halfscope/core/names.hpp>

#include <halfscope/format/catalogue.hpp>
#include <halfscope/format/quantizer.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::names_test {
namespace {

TEST_CASE("the nearest name has the fewest edits", "[names]") {
  const std::array<std::string_view, 4> names{"nearest_even", "toward_zero", "up", "down"};
  CHECK(nearest_name("nearest", names) == "nearest_even");
  CHECK(nearest_name("towards_zero", names) == "toward_zero");
  CHECK(nearest_name("dwon", names) == "down");
  CHECK(nearest_name("up", names) == "up");
  CHECK(nearest_name("u", names) == "up");
  CHECK(nearest_name("", names) == "up");
  CHECK(nearest_name("x", std::span<const std::string_view>{}).empty());
}

TEST_CASE("a name that begins with what is given is nearer than any other", "[names]") {
  const std::array<std::string_view, 4> names{"margin", "backoff_factor", "growth_interval", "growth_factor"};
  CHECK(nearest_name("growth", names) == "growth_factor");
  CHECK(nearest_name("back", names) == "backoff_factor");
  CHECK(nearest_name("ba", names) == "margin");
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
