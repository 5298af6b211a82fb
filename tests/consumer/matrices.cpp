// Uses the installed library with Eigen: a product of FP16 matrices, and a system of equations solved in
// FP16.
#include <halfscope/arithmetic/eigen.hpp>

#include <Eigen/LU>
#include <cstdio>

int main() {
  using Half = halfscope::Number<halfscope::Quantizer{halfscope::fp16}>;
  using Matrix = Eigen::Matrix<Half, Eigen::Dynamic, Eigen::Dynamic>;
  const Matrix ones = Matrix::Constant(20, 2500, Half(1));
  const Matrix product = ones.topRows(2) * ones.transpose().leftCols(2);  // adding up stops at 2048
  Matrix a(2, 2), b(2, 1);
  a << Half(4), Half(1), Half(1), Half(3);
  b << Half(1), Half(2);
  const Matrix x = a.partialPivLu().solve(b);
  const Matrix expected = (Matrix(2, 1) << Half(1.0f / 11), Half(7.0f / 11)).finished();
  const bool right = product(0, 0) == Half(2048) && x.isApprox(expected);
  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
