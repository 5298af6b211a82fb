// Eigen with halfscope::Number: products in the documented order, and decompositions that solve.
#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/arithmetic/eigen.hpp>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <Eigen/QR>

#include "tests/support/catch.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::eigen_test {
namespace {

using Half = Number<Quantizer{fp16}>;
using Bfloat = Number<Quantizer{bf16}>;

template <typename Scalar, int order = Eigen::ColMajor>
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, order>;

template <typename M>
M random_matrix(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed) {
  const std::vector<float> values = uniform_floats(static_cast<std::size_t>(rows * columns), -1, 1, seed);
  M matrix(rows, columns);
  for (Eigen::Index i = 0; i < rows; ++i) {
    for (Eigen::Index j = 0; j < columns; ++j) {
      matrix(i, j) = typename M::Scalar(values[static_cast<std::size_t>(i * columns + j)]);
    }
  }
  return matrix;
}

/// Elements of `c` that are not the ordered sums of a b.
template <typename A, typename B, typename C>
int count_wrong(const A& a, const B& b, const C& c, const AccumulateModel& model) {
  int wrong = 0;
  std::vector<float> row(static_cast<std::size_t>(a.cols())), column(row.size());
  for (Eigen::Index m = 0; m < a.rows(); ++m) {
    for (Eigen::Index n = 0; n < b.cols(); ++n) {
      for (Eigen::Index k = 0; k < a.cols(); ++k) {
        row[static_cast<std::size_t>(k)] = static_cast<float>(a(m, k));
        column[static_cast<std::size_t>(k)] = static_cast<float>(b(k, n));
      }
      if (static_cast<float>(c(m, n)) != accumulate_products(row, column, model)) ++wrong;
    }
  }
  return wrong;
}

template <typename Scalar>
void check_products(const char* model_name) {
  const AccumulateModel model = parse_accumulate_model(model_name);
  const Eigen::Index extents[][3] = {{1, 1, 1}, {7, 1, 12}, {5, 9, 6}, {33, 31, 257}, {64, 40, 600}};
  for (const auto& [rows, columns, depth] : extents) {
    const auto a = random_matrix<Matrix<Scalar>>(rows, depth, 1);
    const auto b = random_matrix<Matrix<Scalar>>(depth, columns, 2);
    const Matrix<Scalar, Eigen::RowMajor> a_by_rows = a, b_by_rows = b;
    INFO(model_name << ": " << rows << " x " << columns << " over " << depth);
    CHECK(count_wrong(a, b, Matrix<Scalar>(a * b), model) == 0);
    CHECK(count_wrong(a, b, Matrix<Scalar>(a_by_rows * b), model) == 0);
    CHECK(count_wrong(a, b, Matrix<Scalar, Eigen::RowMajor>(a * b_by_rows), model) == 0);
    CHECK(count_wrong(a, b, Matrix<Scalar>((b.transpose() * a.transpose()).transpose()), model) == 0);
  }
}

TEST_CASE("products of matrices of numbers are the sequential sums", "[eigen]") {
  check_products<Half>("fp16_sequential");
  check_products<Bfloat>("bf16_sequential");
  check_products<Number<Quantizer{fp8_e4m3}>>("fp8_e4m3_sequential");
}

TEST_CASE("a product that is subtracted is rounded after its sum", "[eigen]") {
  const auto a = random_matrix<Matrix<Half>>(20, 30, 1), b = random_matrix<Matrix<Half>>(30, 25, 2);
  const auto start = random_matrix<Matrix<Half>>(20, 25, 3);
  Matrix<Half> c = start;
  c.noalias() -= a * b;
  const Matrix<Half> product = a * b;
  CHECK(c == start - product);
}

double unit_roundoff(const Half&) {
  return 0x1p-11;
}
double unit_roundoff(const Bfloat&) {
  return 0x1p-8;
}

using Reals = Eigen::MatrixXd;

/// |a x - b| as a share of |a| |x| + |b|, in units of the roundoff: the backward error (Higham, "Accuracy and
/// Stability of Numerical Algorithms", 7.1). A stable solver keeps it near 1, and below the matrix's size.
template <typename Scalar>
double backward_error(const Matrix<Scalar>& a, const Matrix<Scalar>& x, const Matrix<Scalar>& b) {
  const Reals exact_a = a.template cast<double>(), exact_x = x.template cast<double>(),
              exact_b = b.template cast<double>();
  const double residual = (exact_a * exact_x - exact_b).norm();
  return residual / (exact_a.norm() * exact_x.norm() + exact_b.norm()) / unit_roundoff(Scalar());
}

template <typename Scalar>
void check_decompositions() {
  for (const Eigen::Index size : {3, 16, 48}) {
    INFO("size " << size);
    const auto a = random_matrix<Matrix<Scalar>>(size, size, 7);
    const auto b = random_matrix<Matrix<Scalar>>(size, 2, 8);
    const auto bound = static_cast<double>(size);
    const auto check = [&](const char* name, const Matrix<Scalar>& matrix, const Matrix<Scalar>& x) {
      INFO(name);
      const double error = backward_error(matrix, x, b);
      CHECK(error < bound);
      CHECK(error > 1e-3);  // that of a computation in more precision
    };
    check("PartialPivLU", a, a.partialPivLu().solve(b));
    check("HouseholderQR", a, a.householderQr().solve(b));
    check("ColPivHouseholderQR", a, a.colPivHouseholderQr().solve(b));
    Matrix<Scalar> positive = a * a.transpose();
    for (Eigen::Index i = 0; i < size; ++i) positive(i, i) += Scalar(1);
    check("LLT", positive, positive.llt().solve(b));
    check("LDLT", positive, positive.ldlt().solve(b));
  }
}

TEST_CASE("LU, QR and Cholesky decompositions solve within their error in FP16", "[eigen]") {
  check_decompositions<Half>();
}

TEST_CASE("LU, QR and Cholesky decompositions solve within their error in BF16", "[eigen]") {
  check_decompositions<Bfloat>();
}

TEST_CASE("Eigen's traits are the type's limits", "[eigen]") {
  using Traits = Eigen::NumTraits<Half>;
  CHECK(static_cast<float>(Traits::epsilon()) == 0x1p-10f);
  CHECK(static_cast<float>(Traits::highest()) == 65504);
  CHECK(static_cast<float>(Traits::lowest()) == -65504);
  CHECK(Traits::digits10() == 3);
  CHECK(Matrix<Half>::Constant(2, 2, Half(1)).isApprox(Matrix<Half>::Constant(2, 2, Half(1.001))));
  const Matrix<float> wide = Matrix<Half>::Constant(2, 2, Half(0.1)).cast<float>();
  CHECK(wide(1, 1) == 0x1.998p-4f);
}

}  // namespace
}  // namespace halfscope::eigen_test
