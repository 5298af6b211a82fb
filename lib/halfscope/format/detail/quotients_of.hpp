// The loop of rules for UE4M3 scales; for the rules' own files, which are compiled with -fopenmp-simd.
#pragma once

#include <cstddef>
#include <span>

#include <halfscope/format/block_format.hpp>

namespace halfscope::detail {

/// `quotient` of each of the largest magnitudes.
template <float (*quotient)(float amax, const TensorFactors& tensor)>
void quotients_of(std::span<const float> amax, const TensorFactors& tensor, std::span<float> to) {
  const TensorFactors factors = tensor;  // a copy that `to` cannot alias
  const float* const from = amax.data();
  float* const quotients = to.data();
  const std::size_t count = amax.size();
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) quotients[i] = quotient(from[i], factors);
}

}  // namespace halfscope::detail
