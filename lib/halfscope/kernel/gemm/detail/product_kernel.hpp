// Matrix products on the CPU piece by piece: the split over the threads and the loops of a model.
#pragma once

#include <optional>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/kernel/gemm/detail/gemm_simd.hpp>

namespace halfscope {

struct ProductExtents {
  std::int64_t rows = 0, depth = 0, columns = 0;
  std::int64_t products = 1;  ///< products of this shape, among which threads are divided too
};

/// Rectangles of c, each of them computed in one thread; whatever the number of threads, results are the
/// same.
struct ProductSplit {
  std::int64_t row_count, column_count, row_pieces = 1, column_pieces = 1;

  [[nodiscard]] std::int64_t pieces() const { return row_pieces * column_pieces; }
  [[nodiscard]] OutputRange piece(std::int64_t index) const;
};

/// The loops that compute products in a model's order.
class ProductKernel {
 public:
  /// Throws InvalidArgument where there is no product for `model` on the CPU.
  explicit ProductKernel(const AccumulateModel& model);

  [[nodiscard]] ProductSplit split(const ProductExtents& extents) const;
  /// One piece of c = a b in this thread. The depth is not 0.
  void run(const GatherMatrix& a, const RightMatrix& b, float* c, const OutputRange& range) const noexcept;

 private:
  void run_whole(const GatherMatrix& a, const RightMatrix& b, float* c,
                 const OutputRange& range) const noexcept;
  void run_defined(const GatherMatrix& a, const RightMatrix& b, float* c,
                   const OutputRange& range) const noexcept;
  void run_promoted(const GatherMatrix& a, const RightMatrix& b, float* c,
                    const OutputRange& range) const noexcept;

  AccumulateModel model_;
  std::optional<TensorCoreStep> step_{};         ///< for a tensor core
  std::optional<MatrixCoreStep> matrix_step_{};  ///< for a matrix core
};

}  // namespace halfscope
