// Kernels at the limits of their launches: more elements than a grid has threads, and extents beyond 16 bits.
#include <halfscope/kernel/cast/cast_counters.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>
#include <halfscope/kernel/reduce/sum_of_squares.hpp>

#include "lib/nn/batch_norm.hpp"
#include "lib/nn/dilate.hpp"
#include "lib/nn/embedding.hpp"
#include "lib/nn/layer_norm.hpp"
#include "lib/nn/max_pool.hpp"
#include "lib/nn/softmax.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "lib/nn/upsample.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/matrix_products.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::launch_device_test {
namespace {

/// Beyond what a grid's second and third dimension could have, and what 16 bits could count.
constexpr std::int64_t many = 65'537;

std::vector<float> some(std::int64_t count, std::uint64_t seed) {
  return uniform_floats(static_cast<std::size_t>(count), -2, 2, seed);
}

TEST_CASE("one thread per element reaches those beyond a grid's threads", "[kernel][launch][cuda]") {
  if (!can_use_device()) return;
  constexpr std::int64_t grid_threads = std::int64_t{65'536} * 256, count = grid_threads + 259;
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  const std::vector<std::int32_t> offsets = strided_offsets(count, 127).to_host();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < count; ++i) wrong += offsets[static_cast<std::size_t>(i)] == i * 127 ? 0 : 1;
  CHECK(wrong == 0);
}

TEST_CASE("counting threads reach the elements beyond a grid's", "[kernel][launch][cuda]") {
  constexpr std::int64_t grid_threads = std::int64_t{2'048} * 256, run = 16;
  std::vector<float> values(static_cast<std::size_t>(grid_threads * run + 37 * run + 3), 1.0f);
  const std::size_t zeros[] = {0, values.size() / 2, values.size() - 1};
  for (const std::size_t i : zeros) values[i] = 0;
  values[values.size() - 2] = 3;
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  const auto there = Memory<float>::from(values);
  CastCounters counters;
  count_cast(there.values(), {.nonzero = 1, .normal = 1, .infinite = infinity_bits}, counters);
  CHECK((counters == CastCounters{.zeros = 3, .max_abs = 3}));
}

TEST_CASE("products on the device of many rows, columns and terms", "[kernel][launch][gemm][cuda]") {
  if (!can_use_device()) return;
  for (const Extents& extents : {Extents{many, 1, 1}, {1, many, 1}, {1, 1, many}}) {
    const Operands operands = uniform_operands(extents);
    const auto rows = strided_offsets(extents.rows, extents.depth),
               columns = strided_offsets(extents.depth, 1);
    const GatherMatrix a{operands.a.data(), rows.values(), columns.values(), MatrixLayout::row_major,
                         extents.depth};
    std::vector<float> expected(size_of(extents.rows, extents.columns));
    gemm(a, {operands.b.data(), extents.depth, extents.columns}, expected, {});
    INFO(extents.rows << " x " << extents.columns << " over " << extents.depth);
    CHECK(count_different(device_product(operands, extents, a, {}), expected) == 0);
  }
}

TEST_CASE("sums on the device of many columns, matrices, chunks and terms",
          "[kernel][launch][reduce][cuda]") {
  struct Shape {
    std::int64_t rows, columns, matrices;
  };
  for (const Shape& shape : {Shape{2, many, 1}, {2, 1, many}, {3 * many, 1, 1}}) {
    for (const char* name : {"fp32_sequential", "fp32_chunked(2)", "fp32_pairwise"}) {
      INFO(name << ", " << shape.rows << " x " << shape.columns << " x " << shape.matrices);
      check_device_parity(
          {some(shape.rows * shape.columns * shape.matrices, 1),
           std::vector<float>(size_of(shape.columns, shape.matrices))},
          [&](const Spans& s) {
            column_sums(
                {.x = s[0].data(), .rows = shape.rows, .columns = shape.columns, .matrices = shape.matrices},
                parse_accumulate_model(name), s[1]);
          });
    }
  }
}

TEST_CASE("sums of squares on the device of many terms and arrays", "[kernel][launch][reduce][cuda]") {
  constexpr std::size_t arrays = 1'000;
  std::vector<std::vector<double>> found;
  check_device_parity({some(3 * many, 1), some(arrays, 2)}, [&](const Spans& s) {
    std::vector<std::span<const float>> all{s[0]};
    for (std::size_t i = 0; i < arrays; ++i) all.push_back(s[1].subspan(i, 1));
    Memory<double> sums(all.size() * sum_of_squares_lanes);
    sums_of_squares(all, 0.75f, sums.values());
    found.push_back(sums.to_host());
  });
  if (!found.empty()) CHECK(found.at(0) == found.at(1));
}

TEST_CASE("layers on the device of many rows", "[kernel][launch][cuda]") {
  const std::vector<std::int32_t> labels(many, 1);
  check_device_parity({some(2 * many, 1), some(2 * many, 2), some(many, 3), {0.9f}}, [&](const Spans& s) {
    softmax_cross_entropy(s[0], labels, {}, s[1], s[2]);
    softmax_cross_entropy_gradient(labels, {s[3], 3.0f}, s[1]);
  });
  check_device_parity({some(many, 1), some(many, 2), some(2 * many, 3), some(2, 4), some(2 * many, 5)},
                      [](const Spans& s) {
                        normalise_rows(s[0], s[1], s[2]);
                        scale_and_shift(s[2], s[3], s[3], s[4]);
                        normalise_rows_gradient({s[4], s[1], s[0], s[1]}, s[2]);
                      });
  check_device_parity({some(3 * many, 1), some(3, 2), some(3 * many, 3), some(3 * many, 4)},
                      [](const Spans& s) {
                        normalise(s[0], {s[1], s[1], s[1], s[1]}, s[2], s[3]);
                        normalise_gradient(s[2], {{}, s[1], s[1], {}}, {s[1], s[1]}, s[0]);
                      });
  check_device_parity({some(2 * many, 1), some(3 * many, 2)}, [](const Spans& s) {
    combine(Combination::product, {many, 1}, {s[0], 1, 2}, {s[0], 0, 2}, {s[1], 2, 3});
    copy_columns({1, 2, many}, {s[0], 0, 2, 2}, {s[1], 0, 2, 3});
  });
}

TEST_CASE("tables on the device of many rows and positions", "[kernel][launch][cuda]") {
  std::vector<std::int32_t> taken;
  for (std::int64_t p = 0; p < many; ++p) taken.push_back(static_cast<std::int32_t>(p * 3 % many));
  check_device_parity({some(2 * many, 1), some(2 * many, 2), some(2 * many, 3)}, [&](const Spans& s) {
    const RowIndex index(taken, many);
    gather_rows(s[0], index, s[1]);
    sum_rows(s[1], index, s[2]);
  });
}

TEST_CASE("images on the device of a large batch", "[kernel][launch][cuda]") {
  check_device_parity({some(4 * many, 1), some(many, 2), some(4 * many, 3)}, [](const Spans& s) {
    Memory<std::uint8_t> winner(s[1].size());
    max_pool_2x2(s[0], {many, 2, 2, 1}, s[1], winner.values());
    max_pool_2x2_gradient(s[1], {many, 2, 2, 1}, winner.values(), s[2]);
  });
  check_device_parity({some(many, 1), some(4 * many, 2), some(4 * many, 3)}, [](const Spans& s) {
    upsample(s[0], {many, 1, 1, 1}, 2, s[1]);
    upsample_gradient(s[1], {many, 1, 1, 1}, 2, s[0]);
    spread(s[0], {many, 2, 2, 1}, 2, s[2]);
  });
}

}  // namespace
}  // namespace halfscope::launch_device_test
