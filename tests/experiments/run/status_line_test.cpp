// A status line's text within the width of a terminal.
#include "experiments/run/status_line.hpp"

#include "tests/support/catch.hpp"

namespace halfscope::status_line_test {
namespace {

TEST_CASE("a line is cut to the terminal's width", "[status]") {
  CHECK(cut_to_width("", 0).empty());
  CHECK(cut_to_width("step 3", 6) == "step 3");
  CHECK(cut_to_width("step 30", 6) == "step 3");
  CHECK(cut_to_width("step", 0).empty());
}

TEST_CASE("a cut goes between characters", "[status]") {
  const std::string text = "a\xc3\xa9\xe2\x82\xac!";  // a, é, €
  CHECK(cut_to_width(text, 2) == "a");
  CHECK(cut_to_width(text, 3) == "a\xc3\xa9");
  CHECK(cut_to_width(text, 5) == "a\xc3\xa9");
  CHECK(cut_to_width(text, 6) == "a\xc3\xa9\xe2\x82\xac");
}

}  // namespace
}  // namespace halfscope::status_line_test
