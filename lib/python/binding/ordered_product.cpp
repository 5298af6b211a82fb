// Chooses between the library's matrix product and sums of single elements.
#include "binding/ordered_product.hpp"

#include <vector>

#include <halfscope/core/parallel.hpp>

namespace halfscope::python {
namespace {

void multiply_by_elements(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c,
                          const AccumulateModel& model) {
  const std::size_t depth = a.column.size();
  const auto columns = static_cast<std::size_t>(b.columns);
  const float *left = a.data.floats(), *right = b.data.floats();
  std::vector<float> transposed(depth * columns);
  for (std::size_t k = 0; k < depth; ++k) {
    for (std::size_t n = 0; n < columns; ++n) transposed[n * depth + k] = right[k * columns + n];
  }
  parallel_for(std::ssize(a.row), [&](std::int64_t m) noexcept {
    std::vector<float> row(depth);
    const float* const from = left + a.row[static_cast<std::size_t>(m)];
    for (std::size_t k = 0; k < depth; ++k) row[k] = from[a.column[k]];
    for (std::size_t n = 0; n < columns; ++n) {
      const std::span<const float> column{transposed.data() + n * depth, depth};
      c[static_cast<std::size_t>(m) * columns + n] = accumulate_products(row, column, model);
    }
  });
}

}  // namespace

void multiply(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c, const AccumulateModel& model) {
  const bool by_elements = model.order == AccumulateOrder::pairwise || model.order == AccumulateOrder::kahan;
  (by_elements ? multiply_by_elements : gemm)(a, b, c, model);
}

}  // namespace halfscope::python
