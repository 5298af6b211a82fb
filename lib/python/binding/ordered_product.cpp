// Chooses between the library's matrix products and sums of single elements.
#include "binding/ordered_product.hpp"

#include <vector>

#include <halfscope/core/parallel.hpp>

namespace halfscope::python {
namespace {

/// The orders that no product of matrices has.
bool goes_by_elements(const AccumulateModel& model) {
  return model.order == AccumulateOrder::pairwise || model.order == AccumulateOrder::kahan;
}

/// The right factor (depth, columns), each column in one piece: where it lies so, or in a copy.
class Columns {
 public:
  Columns(const float* b, std::int64_t row_stride, std::int64_t column_stride, std::size_t depth,
          std::size_t columns)
      : first_(b), stride_(column_stride), depth_(depth), count_(columns) {
    if (row_stride == 1) return;
    copy_.resize(depth * columns);
    for (std::size_t k = 0; k < depth; ++k, b += row_stride) {
      for (std::size_t n = 0; n < columns; ++n)
        copy_[n * depth + k] = b[static_cast<std::int64_t>(n) * column_stride];
    }
    first_ = copy_.data();
    stride_ = static_cast<std::int64_t>(depth);
  }

  [[nodiscard]] std::size_t depth() const { return depth_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::span<const float> operator[](std::size_t n) const {
    return {first_ + static_cast<std::int64_t>(n) * stride_, depth_};
  }

 private:
  const float* first_;
  std::int64_t stride_;
  std::size_t depth_, count_;
  std::vector<float> copy_;
};

/// c (rows, b.count()), where left(m, k) is the left factor's element.
template <typename Left>
void multiply_by_elements(std::int64_t rows, const Left& left, const Columns& b, float* c,
                          const AccumulateModel& model) {
  parallel_for(rows, [&](std::int64_t m) noexcept {
    std::vector<float> row(b.depth());
    for (std::size_t k = 0; k < row.size(); ++k) row[k] = left(m, k);
    float* const sums = c + m * static_cast<std::int64_t>(b.count());
    for (std::size_t n = 0; n < b.count(); ++n) sums[n] = accumulate_products(row, b[n], model);
  });
}

}  // namespace

void multiply(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c, const AccumulateModel& model) {
  if (!goes_by_elements(model)) return gemm(a, b, c, model);
  const float* const data = a.data.floats();
  const auto left = [&](std::int64_t m, std::size_t k) {
    return data[std::int64_t{a.row[static_cast<std::size_t>(m)]} + a.column[k]];
  };
  const Columns columns(b.data.floats(), b.columns, 1, a.column.size(), static_cast<std::size_t>(b.columns));
  multiply_by_elements(std::ssize(a.row), left, columns, c.data(), model);
}

void multiply_batch(const StridedMatrices& a, const StridedMatrices& b, std::span<float> c,
                    const AccumulateModel& model) {
  if (!goes_by_elements(model)) return gemm_batch(a, b, c, model);
  if (c.empty()) return;
  for (std::size_t n = 0; n < a.start.size(); ++n) {
    const float* const data = a.data + a.start[n];
    const auto left = [&](std::int64_t m, std::size_t k) {
      return data[m * a.row_stride + static_cast<std::int64_t>(k) * a.column_stride];
    };
    const Columns columns(b.data + b.start[n], b.row_stride, b.column_stride,
                          static_cast<std::size_t>(b.rows), static_cast<std::size_t>(b.columns));
    multiply_by_elements(a.rows, left, columns, c.data() + static_cast<std::int64_t>(n) * a.rows * b.columns,
                         model);
  }
}

}  // namespace halfscope::python
