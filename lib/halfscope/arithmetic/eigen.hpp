// Matrices of halfscope::Number in Eigen: its traits, and products with an order of accumulation.
#pragma once

#include <Eigen/Core>
#include <limits>

#include <halfscope/arithmetic/number.hpp>

/// Vectors, matrices, solvers and decompositions take Number<q> as any other scalar; each operation is
/// rounded once.
template <halfscope::Quantizer q>
struct Eigen::NumTraits<halfscope::Number<q>> : Eigen::GenericNumTraits<halfscope::Number<q>> {
  // NOLINTBEGIN(readability-identifier-naming): Eigen's names
  using Number = halfscope::Number<q>;
  using Real = Number;
  using NonInteger = Number;
  using Nested = Number;
  using Literal = Number;
  enum {
    IsInteger = 0,
    IsSigned = 1,
    IsComplex = 0,
    RequireInitialization = 0,
    ReadCost = 1,
    AddCost = 8,
    MulCost = 8
  };
  /// Difference up to which Eigen takes numbers for equal: some units in the last place.
  static constexpr Number dummy_precision() { return Number(float{8 * static_cast<float>(epsilon())}); }
  static constexpr Number epsilon() { return std::numeric_limits<Number>::epsilon(); }
  static constexpr Number highest() { return std::numeric_limits<Number>::max(); }
  static constexpr Number lowest() { return std::numeric_limits<Number>::lowest(); }
  static constexpr Number infinity() { return std::numeric_limits<Number>::infinity(); }
  static constexpr Number quiet_NaN() { return std::numeric_limits<Number>::quiet_NaN(); }
  // NOLINTEND(readability-identifier-naming)
};

/// The product of matrices with any number of threads: the terms of each element are added up in ascending
/// order from zero, each product and each sum rounded once, as `accumulate_products` does in "sequential"
/// order; then alpha times the sum is added to the result. Eigen calls this for products of matrices whose
/// rows, columns and depth add up to 20 or more and are not fixed at compile time to fewer; smaller ones, and
/// products with vectors, are Eigen's own loops, in which the order may be another.
template <typename Index, halfscope::Quantizer q, int lhs_order, bool conjugate_lhs, int rhs_order,
          bool conjugate_rhs>
struct Eigen::internal::general_matrix_matrix_product<Index, halfscope::Number<q>, lhs_order, conjugate_lhs,
                                                      halfscope::Number<q>, rhs_order, conjugate_rhs,
                                                      Eigen::ColMajor, 1> {
  using Number = halfscope::Number<q>;
  using ResScalar = Number;
  using Traits = gebp_traits<Number, Number>;

  static void run(Index rows, Index columns, Index depth, const Number* lhs, Index lhs_stride,
                  const Number* rhs, Index rhs_stride, Number* result, Index /*result_increment*/,
                  Index result_stride, Number alpha, level3_blocking<Number, Number>& /*blocking*/,
                  GemmParallelInfo<Index>* /*info*/ = nullptr) {
    const const_blas_data_mapper<Number, Index, lhs_order> a(lhs, lhs_stride);
    const const_blas_data_mapper<Number, Index, rhs_order> b(rhs, rhs_stride);
    Eigen::Matrix<Number, Eigen::Dynamic, 1> sum(rows);
    for (Index n = 0; n < columns; ++n) {
      sum.setZero();
      for (Index k = 0; k < depth; ++k) {
        const Number factor = b(k, n);
        for (Index m = 0; m < rows; ++m) sum[m] += a(m, k) * factor;
      }
      Number* column = result + n * result_stride;
      for (Index m = 0; m < rows; ++m) column[m] += alpha * sum[m];
    }
  }
};
