// Device parity of training kernels between the sums: the loops of layers.
#include <halfscope/device/array.hpp>

#include "lib/nn/batch_norm.hpp"
#include "lib/nn/dilate.hpp"
#include "lib/nn/dropout.hpp"
#include "lib/nn/embedding.hpp"
#include "lib/nn/layer_norm.hpp"
#include "lib/nn/losses.hpp"
#include "lib/nn/max_pool.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "lib/nn/upsample.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::training_device_test {
namespace {

std::vector<float> small(std::size_t size, std::uint64_t seed) {
  return uniform_floats(size, -2, 2, seed);
}

TEST_CASE("device parity of max pooling", "[kernel][max_pool][cuda]") {
  for (const ImageShape shape : {ImageShape{0, 2, 2, 1}, {1, 2, 2, 1}, {2, 4, 6, 5}, {3, 32, 34, 17}}) {
    const auto size = static_cast<std::size_t>(shape.batch * shape.height * shape.width * shape.channels);
    std::vector<float> x = mixed_floats(size);
    for (std::size_t i = 0; i < size; i += 3) x[i] = 1;  // equal ones
    check_device_parity({x, mixed_floats(size / 4), mixed_floats(size / 4), mixed_floats(size)},
                        [&](const Spans& s) {
                          Memory<std::uint8_t> winner(s[1].size());
                          max_pool_2x2(s[0], shape, s[1], winner.values());
                          max_pool_2x2_gradient(s[2], shape, winner.values(), s[3]);
                        });
  }
}

TEST_CASE("device parity of columns", "[kernel][columns][cuda]") {
  const auto combinations = {Combination::sum, Combination::difference, Combination::product,
                             Combination::tanh_gradient, Combination::sigmoid_gradient};
  for (const Combination combination : combinations) {
    for (const std::size_t size : parity_sizes) {
      check_device_parity({mixed_floats(size), small(size, 1), small(size, 2)},
                          [&](const Spans& s) { combine(combination, s[0], s[1], s[2]); });
    }
    // Columns 2 to 4 of 9, of 3 and of 7, in place.
    check_device_parity({mixed_floats(40 * 9), small(40 * 3, 1)}, [&](const Spans& s) {
      combine(combination, {40, 3}, {s[0], 2, 9}, {s[1], 0, 3}, {s[0], 2, 9});
    });
  }
  for (const auto function : {Elementary::exp, Elementary::log, Elementary::tanh, Elementary::erf,
                              Elementary::rsqrt, Elementary::sigmoid}) {
    check_device_parity({mixed_floats(3000 * 9), small(3000 * 5, 1)}, [&](const Spans& s) {
      apply(function, {3000, 5}, {s[0], 3, 9}, {s[1], 0, 5});
    });
  }
  // Two matrices of 50 rows, the last 4 of 6 columns; then one row for all rows.
  check_device_parity({mixed_floats(2 * 50 * 6), small(2 * 50 * 4, 1)}, [](const Spans& s) {
    copy_columns({50, 4, 2}, {s[0], 2, 6, 300}, {s[1], 0, 4, 200});
  });
  check_device_parity({mixed_floats(6), small(300, 1)}, [](const Spans& s) {
    copy_columns({50, 3, 2}, {.values = s[0], .matrix = 3}, {.values = s[1], .row = 3, .matrix = 150});
  });
}

TEST_CASE("columns are what a naive loop says, and lie within their arrays", "[kernel][columns]") {
  const std::vector<float> a = small(5 * 9, 1), b = small(5 * 4, 2);
  std::vector<float> y(5 * 3);
  combine(Combination::sigmoid_gradient, {5, 3}, {a, 6, 9}, {b, 1, 4}, {y, 0, 3});
  for (std::size_t r = 0; r < 5; ++r) {
    for (std::size_t c = 0; c < 3; ++c) {
      const float gate = b[r * 4 + 1 + c];
      CHECK(y[r * 3 + c] == a[r * 9 + 6 + c] * (gate * (1.0f - gate)));
    }
  }
  CHECK_THROWS_AS(combine(Combination::sum, {5, 3}, {a, 7, 9}, {b, 1, 4}, {y, 0, 3}), InvalidArgument);
  CHECK_THROWS_AS(copy_columns({6, 3}, {a, 0, 9}, {y, 0, 3}), InvalidArgument);
  CHECK_THROWS_AS(apply(Elementary::exp, {5, 3}, {a, 0, 9}, {y, 1, 3}), InvalidArgument);
  CHECK_THROWS_AS(combine(Combination::sum, a, b, y), InvalidArgument);
}

TEST_CASE("device parity of layer normalisation", "[kernel][layer_norm][cuda]") {
  for (const auto& [rows, features] :
       {std::pair<std::size_t, std::size_t>{0, 3}, {1, 1}, {31, 7}, {257, 259}}) {
    const std::size_t size = rows * features;
    check_device_parity({uniform_floats(size, 0, 3, 1)},
                        [](const Spans& s) { inverse_deviations(s[0], 1e-5f, s[0]); });
    check_device_parity({small(rows, 1), small(rows, 2), mixed_floats(size)},
                        [](const Spans& s) { normalise_rows(s[0], s[1], s[2]); });
    check_device_parity({mixed_floats(size), small(features, 1), small(features, 2), small(size, 3)},
                        [](const Spans& s) { scale_and_shift(s[0], s[1], s[2], s[3]); });
    check_device_parity({small(features, 1), mixed_floats(size)},
                        [](const Spans& s) { scale_columns(s[0], s[1]); });
    check_device_parity({small(size, 1), small(rows, 2), small(rows, 3), small(rows, 4), mixed_floats(size)},
                        [](const Spans& s) {
                          normalise_rows_gradient({s[0], s[1], s[2], s[3]}, s[4]);
                        });
  }
}

TEST_CASE("device parity of embedding", "[kernel][embedding][cuda]") {
  constexpr std::int64_t rows = 7, features = 5;
  for (const std::size_t positions : {0u, 1u, 31u, 1000u}) {
    std::vector<std::int32_t> taken(positions);
    for (std::size_t p = 0; p < positions; ++p)
      taken[p] =
          static_cast<std::int32_t>(RandomStream{1}.bits(p) % (rows - 1));  // the last row is never taken
    check_device_parity({mixed_floats(rows * features), small(positions * features, 1)},
                        [&](const Spans& s) { gather_rows(s[0], RowIndex(taken, rows), s[1]); });
    check_device_parity({mixed_floats(positions * features), small(rows * features, 1)},
                        [&](const Spans& s) { sum_rows(s[0], RowIndex(taken, rows), s[1]); });
  }
  const std::vector<std::int32_t> wrong{0, rows};
  check_says(message_of<InvalidArgument>([&] { RowIndex(wrong, rows); }), {"7", "[0, 7)"});
}

TEST_CASE("device parity of upsampling", "[kernel][upsample][cuda]") {
  for (const ImageShape shape : {ImageShape{0, 2, 2, 1}, {1, 1, 1, 1}, {2, 3, 5, 7}}) {
    for (const std::int64_t factor : {1, 2, 8}) {
      const auto small_size =
          static_cast<std::size_t>(shape.batch * shape.height * shape.width * shape.channels);
      const std::size_t large = small_size * static_cast<std::size_t>(factor * factor);
      check_device_parity({mixed_floats(small_size), small(large, 1)},
                          [&](const Spans& s) { upsample(s[0], shape, factor, s[1]); });
      check_device_parity({mixed_floats(large), small(small_size, 1)},
                          [&](const Spans& s) { upsample_gradient(s[0], shape, factor, s[1]); });
    }
  }
}

TEST_CASE("spread puts zeros between pixels", "[kernel][spread][cuda]") {
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8};  // (1, 2, 2, 2)
  std::vector<float> y(24, -1);                        // (1, 3, 4, 2)
  spread(x, {1, 3, 4, 2}, 2, y);
  CHECK(y == std::vector<float>{1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 6, 0, 0, 7, 8, 0, 0});
  CHECK_THROWS_AS(spread(x, {1, 3, 4, 2}, 3, y), InvalidArgument);
  CHECK_THROWS_AS(spread(x, {1, 3, 4, 2}, 0, y), InvalidArgument);
  CHECK_THROWS_AS(spread(x, {1, 3, 4, 2}, {2, 0}, y), InvalidArgument);
  std::vector<float> tall(16, -1);  // (1, 2, 4, 2)
  spread(x, {1, 2, 4, 2}, {2, 1}, tall);
  CHECK(tall == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0});
  for (const ImageShape shape : {ImageShape{0, 2, 2, 1}, {1, 1, 1, 1}, {2, 3, 5, 7}, {3, 32, 34, 17}}) {
    for (const Stride spacing : {Stride(1), Stride(2), Stride(3), Stride(40), Stride(1, 2), Stride(3, 1)}) {
      const auto few = [](std::int64_t pixels, std::int64_t by) { return (pixels + by - 1) / by; };
      const auto numbers = [&](std::int64_t pixels) {
        return static_cast<std::size_t>(shape.batch * pixels * shape.channels);
      };
      check_device_parity(
          {mixed_floats(numbers(few(shape.height, spacing.rows) * few(shape.width, spacing.columns))),
           small(numbers(shape.height * shape.width), 1)},
          [&](const Spans& s) { spread(s[0], shape, spacing, s[1]); });
    }
  }
}

TEST_CASE("device parity of dropout", "[kernel][dropout][cuda]") {
  const RandomStream stream{.seed = 0x123456789ABCDEF, .step = 17, .site = 4};
  for (const std::size_t size : parity_sizes) {
    check_device_parity({small(size, 1)}, [&](const Spans& s) { dropout_factors(stream, 0.3f, s[0]); });
  }
}

TEST_CASE("device parity of element-wise losses", "[kernel][losses][cuda]") {
  for (const std::size_t size : parity_sizes) {
    check_device_parity(
        {mixed_floats(size), uniform_floats(size, 0, 1, 1), small(size, 2), small(size, 3), {1.11f}},
        [](const Spans& s) {
          sigmoid_losses(s[0], s[1], s[2]);
          sigmoid_losses_gradient(s[0], s[1], {s[4], 3.0f}, s[3]);
        });
    std::vector<float> p = uniform_floats(size, 0, 1, 4);
    for (std::size_t i = 0; i < size; i += 5) p[i] = i % 2 == 0 ? 0.0f : 1.0f;
    for (const auto& probabilities : {mixed_floats(size), p}) {
      check_device_parity(
          {probabilities, uniform_floats(size, 0, 1, 1), small(size, 2), small(size, 3), {1.11f}},
          [](const Spans& s) {
            probability_losses(s[0], s[1], s[2]);
            probability_losses_gradient(s[0], s[1], {s[4], 3.0f}, s[3]);
          });
    }
  }
  constexpr std::size_t columns = 4;
  for (const std::size_t count : {0u, 1u, 31u, 900u}) {
    std::vector<std::int64_t> rows(count);
    for (std::size_t i = 0; i < count; ++i) rows[i] = static_cast<std::int64_t>(i * 7 % 1000);
    check_device_parity({small(1000 * columns, 1),
                         mixed_floats(count * columns),
                         small(count * columns, 2),
                         small(1000 * columns, 3),
                         {1.11f}},
                        [&](const Spans& s) {
                          const auto there = Memory<std::int64_t>::from(rows);
                          const TargetRows targets{there.values(), s[1]};
                          smooth_l1_losses(s[0], targets, s[2]);
                          smooth_l1_losses_gradient(s[0], targets, {s[4], 3.0f}, s[3]);
                        });
  }
}

}  // namespace
}  // namespace halfscope::training_device_test
