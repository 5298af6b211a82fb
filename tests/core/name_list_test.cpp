// Lists of names: what stands between commas, and what "all" stands for.
#include <halfscope/core/name_list.hpp>

#include "tests/support/catch.hpp"

namespace halfscope::name_list_test {
namespace {

using Names = std::vector<std::string_view>;

TEST_CASE("a list is cut at its commas, and all is every name", "[names]") {
  const Names known{"a", "b", "c"};
  CHECK(names_in("b", known) == Names{"b"});
  CHECK(names_in("b,x,a", known) == Names{"b", "x", "a"});
  CHECK(names_in("", known) == Names{""});
  CHECK(names_in("a,,b,", known) == Names{"a", "", "b", ""});
  CHECK(names_in("all", known) == known);
  CHECK(names_in("all", {}).empty());
  CHECK(names_in("all,b", known) == Names{"all", "b"});  // the name of none of them
}

}  // namespace
}  // namespace halfscope::name_list_test
