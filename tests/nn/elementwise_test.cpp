// Element-wise kernels against plain loops, at sizes that fill no vector and with two threads.
#include <halfscope/core/isa.hpp>

#include "lib/nn/elementwise.hpp"

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::elementwise_test {
namespace {

constexpr std::size_t sizes[] = {0, 1, 31, 257 * 259};

template <typename Check>
void on_every_isa(Check&& check) {
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 2}) {
      const ForcedIsa forced(isa);
      const Threads several(threads);
      INFO(name_of(isa) << ", " << threads << " threads");
      check();
    }
  }
}

TEST_CASE("relu, its gradient, add and scale", "[elementwise]") {
  on_every_isa([] {
    for (const std::size_t size : sizes) {
      const std::vector<float> x = uniform_floats(size, -1, 1, 1), g = uniform_floats(size, -1, 1, 2);
      std::vector<float> y(size), dx = g, sum = x, scaled(size);
      relu(x, y);
      relu_gradient(y, dx);
      add(g, sum);
      scale(x, 0.5f, scaled);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < size; ++i) {
        wrong += y[i] != std::fmax(x[i], 0.0f) || dx[i] != (x[i] > 0 ? g[i] : 0.0f);
        wrong += sum[i] != x[i] + g[i] || scaled[i] != x[i] * 0.5f;
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("numbers that are not positive are scaled, by the signs of others or their own", "[elementwise]") {
  on_every_isa([] {
    for (const std::size_t size : sizes) {
      const std::vector<float> x = uniform_floats(size, -1, 1, 1), g = uniform_floats(size, -1, 1, 2);
      std::vector<float> y = x, dx = g;
      scale_unless_positive(y, 0.2f, y);
      scale_unless_positive(x, 0.2f, dx);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < size; ++i) {
        wrong += y[i] != (x[i] > 0 ? x[i] : x[i] * 0.2f) || dx[i] != (x[i] > 0 ? g[i] : g[i] * 0.2f);
      }
      CHECK(wrong == 0);
    }
    const std::vector<float> x{0.0f, -0.0f, NAN, INFINITY, -INFINITY};
    std::vector<float> y{1, 2, 3, 4, 5};
    scale_unless_positive(x, 0.5f, y);
    CHECK(y == std::vector<float>{0.5f, 1, 1.5f, 4, 2.5f});
  });
}

TEST_CASE("largest_magnitude finds it wherever it is, and what is not finite above all", "[elementwise]") {
  on_every_isa([] {
    CHECK(largest_magnitude({}) == 0);
    for (const std::size_t size : {std::size_t{1}, std::size_t{31}, std::size_t{40000}}) {
      std::vector<float> x = uniform_floats(size, -1, 1, 3);
      for (const std::size_t where : {std::size_t{0}, size / 2, size - 1}) {
        const float before = x[where];
        for (const float large : {1.5f, -65504.0f, INFINITY, -INFINITY}) {
          x[where] = large;
          CHECK(largest_magnitude(x) == std::fabs(large));
        }
        x[0] = x[size - 1] = INFINITY;
        x[where] = std::numeric_limits<float>::quiet_NaN();
        CHECK(std::isnan(largest_magnitude(x)));
        x[0] = x[size - 1] = 0;
        x[where] = before;
      }
    }
  });
}

TEST_CASE("transpose swaps rows and columns of any extents", "[elementwise]") {
  for (const std::int64_t rows : {0, 1, 3, 4, 31, 32, 33, 70}) {
    for (const std::int64_t columns : {0, 1, 2, 5, 32, 35, 257}) {
      CAPTURE(rows, columns);
      const std::vector<float> x = uniform_floats(static_cast<std::size_t>(rows * columns), -1, 1, 3);
      std::vector<float> expected, swapped(x.size());
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t r = 0; r < rows; ++r)
          expected.push_back(x[static_cast<std::size_t>(r * columns + c)]);
      }
      transpose(x, rows, columns, swapped);
      CHECK(swapped == expected);
    }
  }
}

TEST_CASE("add_to_rows and pad_images", "[elementwise]") {
  on_every_isa([] {
    const std::vector<float> bias{1, 2, 3};
    std::vector<float> y(3 * 7, 10.0f);
    add_to_rows(bias, y);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == 10.0f + bias[i % 3]);
    const std::vector<float> images = uniform_floats(2 * 3 * 4 * 2, 1, 2, 4);
    std::vector<float> padded(2 * 5 * 6 * 2, -1.0f);
    pad_images(images, {2, 3, 4, 2}, {1, 1}, padded);
    const auto at = [&](std::size_t n, std::size_t r, std::size_t c, std::size_t k) {
      return padded[((n * 5 + r) * 6 + c) * 2 + k];
    };
    CHECK(at(1, 0, 3, 1) == 0.0f);
    CHECK(at(0, 4, 5, 0) == 0.0f);
    CHECK(at(1, 1, 1, 0) == images[24]);
    CHECK(at(1, 3, 4, 1) == images[47]);
    std::vector<float> columns_padded(2 * 3 * 8 * 2, -1.0f);
    pad_images(images, {2, 3, 4, 2}, {0, 2}, columns_padded);
    CHECK(columns_padded[3] == 0.0f);
    CHECK(columns_padded[4] == images[0]);
    CHECK(columns_padded[2 * 3 * 8 * 2 - 5] == images[47]);
    CHECK(columns_padded[2 * 3 * 8 * 2 - 4] == 0.0f);
  });
}

TEST_CASE("element-wise kernels refuse sizes that differ", "[elementwise]") {
  std::vector<float> three(3), four(4);
  CHECK_THROWS_AS(relu(three, four), InvalidArgument);
  CHECK_THROWS_AS(add(three, four), InvalidArgument);
  CHECK_THROWS_AS(add_to_rows(three, four), InvalidArgument);
  CHECK_THROWS_AS(transpose(four, 2, 3, four), InvalidArgument);
}

}  // namespace
}  // namespace halfscope::elementwise_test
