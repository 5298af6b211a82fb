// The matrix product equals its definition, one sum per element in ascending order, bit for bit.
#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/gemm.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope {
namespace {

struct Extents {
  std::int64_t rows, columns, depth;
};

/// c[m, n] = the FP32 sum over ascending k of separately rounded products.
std::vector<float> defined_product(const GatherMatrix& a, const std::vector<float>& b,
                                   const Extents& extents) {
  std::vector<float> c(static_cast<std::size_t>(extents.rows * extents.columns));
  for (std::size_t m = 0; m < a.row.size(); ++m) {
    for (std::size_t n = 0; n < static_cast<std::size_t>(extents.columns); ++n) {
      float sum = 0;
      for (std::size_t k = 0; k < a.column.size(); ++k) {
        const volatile float product =
            a.data[a.row[m] + a.column[k]] * b[k * static_cast<std::size_t>(extents.columns) + n];
        sum += product;
      }
      c[m * static_cast<std::size_t>(extents.columns) + n] = sum;
    }
  }
  return c;
}

void check_product(const Extents& extents, std::int64_t row_stride, std::int64_t column_stride) {
  const auto size = [](std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a * b); };
  const std::vector<float> a = uniform_floats(size(extents.rows, extents.depth), -1, 1, 1);
  const std::vector<float> b = uniform_floats(size(extents.depth, extents.columns), -1, 1, 2);
  const auto rows = strided_offsets(extents.rows, row_stride);
  const auto columns = strided_offsets(extents.depth, column_stride);
  const GatherMatrix matrix{a.data(), rows, columns};
  const std::vector<float> expected = defined_product(matrix, b, extents);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(name_of(isa) << ": " << extents.rows << " x " << extents.columns << " over " << extents.depth);
    std::vector<float> c(expected.size(), -1.0f);
    gemm(matrix, {b.data(), extents.depth, extents.columns}, c, {});
    CHECK(c == expected);
  }
}

TEST_CASE("gemm is the ordered sum for plain and transposed matrices, every tile's edge included", "[gemm]") {
  for (const Extents& extents :
       {Extents{1, 1, 1}, Extents{0, 5, 3}, Extents{3, 5, 0}, Extents{31, 17, 31}, Extents{25, 33, 513},
        Extents{12, 64, 256}, Extents{257, 10, 259}, Extents{5, 1, 1000}}) {
    check_product(extents, extents.depth, 1);
    check_product(extents, 1, extents.rows);
  }
}

TEST_CASE("gemm gives the same bits with one and two threads", "[gemm][threads]") {
  const std::vector<float> a = uniform_floats(500 * 300, -1, 1, 3), b = uniform_floats(300 * 40, -1, 1, 4);
  const auto rows = strided_offsets(500, 300);
  const auto columns = strided_offsets(300, 1);
  std::vector<float> one(500 * 40), two(500 * 40);
  gemm({a.data(), rows, columns}, {b.data(), 300, 40}, one, {});
  set_thread_count(2);
  gemm({a.data(), rows, columns}, {b.data(), 300, 40}, two, {});
  set_thread_count(1);
  CHECK(one == two);
}

TEST_CASE("gemm rejects shapes that disagree and orders it does not have", "[gemm]") {
  const std::vector<float> a(6), b(6);
  const auto rows = strided_offsets(2, 3);
  const auto columns = strided_offsets(3, 1);
  std::vector<float> c(4);
  CHECK(message_of<RequestError>([&] {
          gemm({a.data(), rows, columns}, {b.data(), 2, 3}, c, {});
        }) == "gemm: (2, 3) times (2, 3) does not give 4 elements");
  const AccumulateModel half{.format = fp16};
  CHECK_THROWS_AS(gemm({a.data(), rows, columns}, {b.data(), 3, 2}, c, half), RequestError);
  CHECK_THROWS_AS(strided_offsets(1 << 20, 1 << 20), RequestError);
}

}  // namespace
}  // namespace halfscope
