// Multiplies and solves with matrices of FP16 numbers: every operation is rounded once, sums in a stated
// order.
#include <fmt/format.h>
#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/arithmetic/eigen.hpp>

#include <Eigen/LU>
#include <vector>

using Half = halfscope::Number<halfscope::Quantizer{halfscope::fp16}>;
using Matrix = Eigen::Matrix<Half, Eigen::Dynamic, Eigen::Dynamic>;

int main() {
  // FP16 counts to 2048 only: 2048 + 1 lies halfway between two numbers and is rounded to the even one, 2048.
  const Matrix ones = Matrix::Constant(32, 4096, Half(1));
  const Matrix product = ones * ones.transpose();
  fmt::print("one after the other  4096 ones: {}\n", product(0, 0));

  // The same sum as other hardware adds it up.
  const std::vector<float> row(4096, 1.0f);
  for (const char* name : {"fp16_chunked(64)", "fp16_pairwise", "tensor_core(hopper)"}) {
    const auto model = halfscope::parse_accumulate_model(name);
    fmt::print("{:20}  4096 ones: {}\n", name, halfscope::accumulate_products(row, row, model));
  }

  // Gaussian elimination in FP16, for a right-hand side whose solution is all ones.
  const int size = 8;
  Matrix a(size, size);
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) a(i, j) = Half(i == j ? 4.0f : 1.0f / static_cast<float>(1 + i + j));
  }
  const Matrix b = a * Matrix::Constant(size, 1, Half(1));
  const Matrix x = a.partialPivLu().solve(b);
  const double error = (x.cast<double>().array() - 1).abs().maxCoeff();
  fmt::print("largest error of the solution: {:.1e}, FP16's unit roundoff is 4.9e-04\n", error);
  return static_cast<float>(product(0, 0)) == 2048 && error < 1e-2 ? 0 : 1;
}
