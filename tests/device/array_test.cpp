// Arrays own their memory, know their shape and move.
#include <halfscope/device/array.hpp>

#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::array_test {
namespace {

TEST_CASE("shapes are counted and printed", "[array]") {
  CHECK(element_count({}) == 1);
  CHECK(element_count({0}) == 0);
  CHECK(element_count({257, 259}) == 257 * 259);
  CHECK(to_string(Shape{2, 3, 4}) == "(2, 3, 4)");
  CHECK(to_string(Shape{}) == "()");
  check_says(message_of<InvalidArgument>([] { (void)element_count({2, -1}); }), {"(2, -1)"});
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  check_says(message_of<InvalidArgument>([&] { (void)element_count({huge, huge}); }), {"memory"});
}

TEST_CASE("elements are where they were put", "[array]") {
  Array a = Array::from({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(a.size() == 6);
  CHECK(a.extent(1) == 3);
  CHECK(a.device() == Device::cpu);
  CHECK(a.dtype() == DType::f32);
  CHECK(a[4] == 5);
  a[4] = -5;
  CHECK(a.values()[4] == -5);
  CHECK_THROWS_AS(Array::from({2, 2}, {1, 2, 3}), InvalidArgument);
}

TEST_CASE("memory is aligned, zeros are zero also in memory used before", "[array]") {
  for (const std::int64_t size : {0, 1, 31, 257 * 259}) {
    for (int round = 0; round < 3; ++round) {
      Array a = Array::zeros({size});
      CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0);
      for (const float x : a.values()) REQUIRE(x == 0);
      for (float& x : a.values()) x = 42;
    }
  }
  CHECK(Array{}.empty());
  CHECK(Array(Shape{}).size() == 1);
}

TEST_CASE("clones are independent, moves carry everything over", "[array]") {
  Array a = Array::from({3}, {1, 2, 3});
  Array copy = a.clone();
  copy[0] = 10;
  CHECK(a[0] == 1);
  Array moved = std::move(a);
  CHECK(moved.shape() == Shape{3});
  CHECK(moved[2] == 3);
  CHECK(Array{}.clone().empty());
}

TEST_CASE("a reshape keeps the elements", "[array]") {
  Array a = Array::from({2, 3}, {1, 2, 3, 4, 5, 6});
  a.reshape({3, 2});
  CHECK(a.shape() == Shape{3, 2});
  CHECK(a[5] == 6);
  check_says(message_of<InvalidArgument>([&] { a.reshape({4}); }), {"(3, 2)", "(4)"});
}

}  // namespace
}  // namespace halfscope::array_test
