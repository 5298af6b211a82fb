// The peer of the matrix product, compiled once per instruction set; alone in its file, for Eigen's headers
// are large.
#include <Eigen/Core>

#include <halfscope/kernel/detail/dispatch.hpp>

#include "experiments/cli/bench/bench.hpp"

namespace halfscope {

template <Isa isa>
void eigen_product_isa(const float* a, const float* b, float* c, int size) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Matrix> left(a, size, size), right(b, size, size);
  Eigen::Map<Matrix>(c, size, size).noalias() = left * right;
}
template void eigen_product_isa<target_isa>(const float*, const float*, float*, int);

template <Isa isa>
bool eigen_has_fma_isa() {
#if defined(EIGEN_VECTORIZE_FMA)
  return true;
#else
  return false;
#endif
}
template bool eigen_has_fma_isa<target_isa>();

}  // namespace halfscope
