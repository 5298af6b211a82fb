// Blocks of quantized tensors, by the shapes of payload and scales.
#include <halfscope/io/layouts/detail/block_layout.hpp>

#include "tests/support/catch.hpp"

namespace halfscope {
namespace {

using Shape2 = std::vector<std::int64_t>;

TEST_CASE("blocks follow from the two shapes", "[block_layout]") {
  const auto tiles = fit_blocks({300, 256}, {3, 2});
  REQUIRE(tiles);
  CHECK(tiles->block_rows == 128);
  CHECK(tiles->block_columns == 128);
  CHECK(tiles->scale_of(127, 127) == 0);
  CHECK(tiles->scale_of(128, 127) == 2);
  CHECK(tiles->scale_of(299, 255) == 5);
  const auto experts = fit_blocks({2, 4, 64}, {2, 4, 2});
  REQUIRE(experts);
  CHECK(experts->block_columns == 32);
  CHECK(experts->scale_of(5, 32) == 11);
  const auto rows = fit_blocks({4, 8}, Shape2{4});
  REQUIRE(rows);
  CHECK(rows->scale_of(3, 7) == 3);
  for (const Shape2& one : {Shape2{}, Shape2{1}, Shape2{1, 1}}) {
    const auto all = fit_blocks({4, 8}, one);
    REQUIRE(all);
    CHECK(all->scale_of(3, 7) == 0);
  }
}

TEST_CASE("scales that do not fit are refused", "[block_layout]") {
  CHECK_FALSE(fit_blocks({4, 64}, {3, 5}));
  CHECK_FALSE(fit_blocks({4, 64}, {4, 0}));
  CHECK_FALSE(fit_blocks({2, 4, 64}, {3, 4, 2}));
  CHECK_FALSE(fit_blocks({64}, {1, 2, 2}));
}

}  // namespace
}  // namespace halfscope
