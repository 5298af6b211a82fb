// Tables of the terminal: how wide the columns are, and on which side the cells stand.
#include "experiments/table/text_table.hpp"

#include "tests/support/catch.hpp"

namespace halfscope::text_table_test {
namespace {

TEST_CASE("a column is as wide as its widest cell", "[table]") {
  CHECK(text_table({{"arm", "seeds", "mean"}, {"fp16_mixed", "3", "-"}, {"x", "10", "63.31"}}) ==
        "  arm          seeds   mean\n"
        "  fp16_mixed       3      -\n"
        "  x               10  63.31\n");
  CHECK(text_table({{"only"}}) == "  only \n");
  CHECK(text_table({{"", ""}, {"a", ""}}) == "      \n  a   \n");
}

TEST_CASE("a share is printed in percent", "[table]") {
  CHECK(percent(0.1234) == "12.3 %");
  CHECK(percent(0.0) == "0.0 %");
  CHECK(percent(1.0) == "100.0 %");
  CHECK(percent(std::nullopt) == "-");
}

}  // namespace
}  // namespace halfscope::text_table_test
