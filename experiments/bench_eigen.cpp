// The peer of the matrix product; alone in its file, for Eigen's headers are large.
#include <Eigen/Core>

#include "experiments/bench.hpp"

namespace halfscope {

void eigen_product(const float* a, const float* b, float* c, int size) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Matrix> left(a, size, size), right(b, size, size);
  Eigen::Map<Matrix>(c, size, size).noalias() = left * right;
}

std::string eigen_description() {
  return "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
         std::to_string(EIGEN_MINOR_VERSION) + ", " + Eigen::SimdInstructionSetsInUse();
}

}  // namespace halfscope
