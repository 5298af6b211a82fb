// Products of many matrices equal their definition, element by element and bit for bit, however they lie.
#include <halfscope/kernel/gemm/gemm_batch.hpp>

#include <halfscope/core/isa.hpp>

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/matrix_products.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::gemm_batch_test {
namespace {

enum class Lay { plain, transposed, spaced };

/// Some matrices of one shape in an array of their own, with unused elements around each.
struct Batch {
  std::vector<float> values;
  std::vector<std::int64_t> start;
  StridedMatrices matrices;

  [[nodiscard]] float at(std::size_t n, std::int64_t i, std::int64_t j) const {
    return matrices.data[start[n] + i * matrices.row_stride + j * matrices.column_stride];
  }
};

/// `count` products by `different` matrices, which they take in turn from the last to the first.
Batch batch_of(std::int64_t rows, std::int64_t columns, Lay lay, std::int64_t count, std::int64_t different) {
  Batch batch;
  StridedMatrices& m = batch.matrices;
  m.rows = rows;
  m.columns = columns;
  m.row_stride = lay == Lay::plain ? columns + 3 : lay == Lay::transposed ? 1 : 2;
  m.column_stride = lay == Lay::plain ? 1 : lay == Lay::transposed ? rows + 5 : 2 * rows + 1;
  const std::int64_t size = rows * m.row_stride + columns * m.column_stride + 1;
  batch.values = uniform_floats(static_cast<std::size_t>(size * different + 1), -1, 1,
                                static_cast<std::uint64_t>(rows * 7 + columns));
  for (std::int64_t n = 0; n < count; ++n) batch.start.push_back(1 + (count - 1 - n) % different * size);
  return batch;
}

/// The vectors stay where they are when a batch is moved, so that it is looked at where it ends up.
void point_into(Batch& batch) {
  batch.matrices.data = batch.values.data();
  batch.matrices.start = batch.start;
}

std::vector<float> defined_products(const Batch& a, const Batch& b, const AccumulateModel& model) {
  const auto depth = static_cast<std::size_t>(a.matrices.columns);
  std::vector<float> c, row(depth), column(depth);
  for (std::size_t product = 0; product < a.start.size(); ++product) {
    for (std::int64_t m = 0; m < a.matrices.rows; ++m) {
      for (std::int64_t n = 0; n < b.matrices.columns; ++n) {
        for (std::size_t k = 0; k < depth; ++k) {
          row[k] = a.at(product, m, static_cast<std::int64_t>(k));
          column[k] = b.at(product, static_cast<std::int64_t>(k), n);
        }
        c.push_back(accumulate_products(row, column, model));
      }
    }
  }
  return c;
}

void check_batch(Batch a, Batch b, const AccumulateModel& model) {
  point_into(a);
  point_into(b);
  const std::vector<float> expected = defined_products(a, b, model);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(to_string(model) << " on " << name_of(isa) << ": " << a.start.size() << " of " << a.matrices.rows
                          << " x " << b.matrices.columns << " over " << a.matrices.columns << ", strides "
                          << a.matrices.row_stride << ", " << a.matrices.column_stride << " and "
                          << b.matrices.row_stride << ", " << b.matrices.column_stride);
    std::vector<float> c(expected.size(), -1.0f);
    gemm_batch(a.matrices, b.matrices, c, model);
    CHECK(count_different(c, expected) == 0);
  }
}

TEST_CASE("products of many matrices are ordered sums, however the matrices lie", "[gemm][batch]") {
  for (const Extents& e : {Extents{1, 1, 1}, Extents{5, 3, 7}, Extents{25, 33, 31}, Extents{13, 67, 18}}) {
    for (const Lay left : {Lay::plain, Lay::transposed, Lay::spaced}) {
      for (const Lay right : {Lay::plain, Lay::transposed, Lay::spaced}) {
        const Batch a = batch_of(e.rows, e.depth, left, 3, 3), b = batch_of(e.depth, e.columns, right, 3, 3);
        for (const AccumulateModel& model : product_models()) check_batch(a, b, model);
      }
    }
  }
}

TEST_CASE("sums of several passes are ordered where the right factor lies transposed", "[gemm][batch]") {
  for (const AccumulateModel& model : product_models()) {
    check_batch(batch_of(7, 701, Lay::transposed, 1, 1), batch_of(701, 35, Lay::transposed, 1, 1), model);
  }
}

TEST_CASE("products of many matrices take infinities, NaNs and the largest numbers", "[gemm][batch]") {
  Batch a = batch_of(9, 40, Lay::transposed, 2, 2), b = batch_of(40, 37, Lay::transposed, 2, 2);
  const std::vector<float> special = special_floats();
  for (auto* values : {&a.values, &b.values}) {
    for (std::size_t i = 7; i < values->size(); i += 101) (*values)[i] = special[(i / 101) % special.size()];
  }
  for (const AccumulateModel& model : product_models()) check_batch(a, b, model);
}

TEST_CASE("a matrix may stand in several products", "[gemm][batch]") {
  for (const char* name : {"fp32_fused", "fp16_sequential", "fp16_fused", "tensor_core(hopper)"}) {
    const AccumulateModel model = parse_accumulate_model(name);
    check_batch(batch_of(6, 20, Lay::plain, 5, 1), batch_of(20, 40, Lay::transposed, 5, 5), model);
    check_batch(batch_of(6, 20, Lay::transposed, 6, 2), batch_of(20, 40, Lay::plain, 6, 3), model);
  }
}

TEST_CASE("a row and a column may be one number that is repeated", "[gemm][batch]") {
  Batch a = batch_of(5, 19, Lay::plain, 2, 2), b = batch_of(19, 34, Lay::plain, 2, 2);
  a.matrices.row_stride = 0;
  b.matrices.column_stride = 0;
  for (const AccumulateModel& model : product_models()) check_batch(a, b, model);
}

TEST_CASE("products give the same bits with any number of threads, split by themselves or by tiles",
          "[gemm][batch][threads]") {
  for (const auto& [extents, count] :
       {std::pair{Extents{40, 48, 33}, 70}, {Extents{129, 150, 70}, 3}, {Extents{30, 700, 60}, 2}}) {
    Batch a = batch_of(extents.rows, extents.depth, Lay::plain, count, count),
          b = batch_of(extents.depth, extents.columns, Lay::transposed, count, count);
    point_into(a);
    point_into(b);
    for (const char* name : {"fp32_sequential", "fp16_sequential", "fp16_fused", "tensor_core(hopper)"}) {
      const AccumulateModel model = parse_accumulate_model(name);
      std::vector<float> one(size_of(extents.rows, extents.columns) * a.start.size()), more = one;
      gemm_batch(a.matrices, b.matrices, one, model);
      for (const int threads : {2, 5}) {
        std::ranges::fill(more, -1.0f);
        with_threads(threads, [&] { gemm_batch(a.matrices, b.matrices, more, model); });
        CHECK(count_different(one, more) == 0);
      }
    }
  }
}

TEST_CASE("products over nothing are zero, and no products are none", "[gemm][batch]") {
  Batch a = batch_of(3, 0, Lay::plain, 2, 2), b = batch_of(0, 4, Lay::transposed, 2, 2);
  point_into(a);
  point_into(b);
  std::vector<float> c(24, -1.0f);
  gemm_batch(a.matrices, b.matrices, c, {});
  CHECK(c == std::vector<float>(24, 0.0f));
  gemm_batch({nullptr, {}, 3, 5, 5}, {nullptr, {}, 5, 4, 4}, {}, {});
  gemm_batch({nullptr, {}, 0, 5, 5}, {nullptr, {}, 5, 4, 4}, {}, {});
}

TEST_CASE("gemm_batch refuses what disagrees, strides below 0 and orders that it has not", "[gemm][batch]") {
  Batch a = batch_of(2, 3, Lay::plain, 2, 2), b = batch_of(3, 4, Lay::plain, 2, 2);
  point_into(a);
  point_into(b);
  std::vector<float> c(16);
  const auto message = [&](const StridedMatrices& left, const StridedMatrices& right,
                           const AccumulateModel& model = {}) {
    return message_of<InvalidArgument>([&] { gemm_batch(left, right, c, model); });
  };
  StridedMatrices other = b.matrices;
  other.rows = 2;
  CHECK(message(a.matrices, other) == "gemm_batch: 2 of (2, 3) times 2 of (2, 4) do not give 16 elements");
  other = b.matrices;
  other.start = other.start.first(1);
  CHECK(message(a.matrices, other) == "gemm_batch: 2 of (2, 3) times 1 of (3, 4) do not give 16 elements");
  other = b.matrices;
  other.column_stride = -1;
  check_says(message(a.matrices, other), {"a negative stride"});
  check_says(message(a.matrices, b.matrices, parse_accumulate_model("fp16_pairwise")), {"fp16_pairwise"});
  check_says(message(a.matrices, b.matrices, {.order = AccumulateOrder::cublas}), {"choose an order"});
  other = a.matrices;
  other.column_stride = std::numeric_limits<std::int32_t>::max() / 2;
  check_says(message(other, b.matrices), {"too large for one product"});
}

}  // namespace
}  // namespace halfscope::gemm_batch_test
