// Matrix products of every instruction set and of the device beside their definition.
#pragma once

#include <cstdint>
#include <vector>

#include <halfscope/kernel/gemm/gemm.hpp>

namespace halfscope {

struct Extents {
  std::int64_t rows, columns, depth;
};

/// a: (rows, depth) or for a transposed matrix (depth, rows); b: (depth, columns). They are numbers of what
/// the device stores them in.
struct Operands {
  std::vector<float> a, b;
  DType a_storage = DType::f32, b_storage = DType::f32;
};

[[nodiscard]] inline std::size_t size_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a * b);
}

/// Every listed model that products have, and the operand formats and chunks that the list leaves out.
[[nodiscard]] std::vector<AccumulateModel> product_models();

[[nodiscard]] std::size_t count_different(const std::vector<float>& x, const std::vector<float>& y);

/// The product on the device.
[[nodiscard]] std::vector<float> device_product(const Operands& operands, const Extents& extents,
                                                const GatherMatrix& matrix, const AccumulateModel& model);

/// That every element has the bits of `accumulate_products`: plain and transposed, and as a matrix whose
/// neighbours in memory nobody knows.
void check_products(const Operands& operands, const Extents& extents, const AccumulateModel& model);

/// FloatsOf on [-1, 1).
[[nodiscard]] Operands uniform_operands(const Extents& extents);

}  // namespace halfscope
