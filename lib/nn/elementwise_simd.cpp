// The element-wise loops, compiled once per instruction set.
#include "lib/nn/elementwise.hpp"
#include "lib/nn/elementwise_element.hpp"

namespace halfscope {

template <Isa isa>
void ElementwiseLoops<isa>::relu(const float* x, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = rectified(x[i]);
}

template <Isa isa>
void ElementwiseLoops<isa>::relu_gradient(const float* y, float* gradient, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) gradient[i] = passes_relu(y[i]) ? gradient[i] : 0.0f;
}

template <Isa isa>
void ElementwiseLoops<isa>::scale_unless_positive(const float* x, float factor, float* values,
                                                  std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = scaled_unless_positive(x[i], factor, values[i]);
}

template <Isa isa>
void ElementwiseLoops<isa>::add_to_rows(const float* bias, float* y, std::int64_t rows,
                                        std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) y[r * columns + c] += bias[c];
  }
}

template <Isa isa>
void ElementwiseLoops<isa>::add(const float* addend, float* sum, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += addend[i];
}

template <Isa isa>
void ElementwiseLoops<isa>::scale(const float* x, float factor, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] * factor;
}

template <Isa isa>
std::uint32_t ElementwiseLoops<isa>::largest_magnitude_bits(const float* x, std::int64_t count) {
  std::int32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) largest = larger_magnitude(largest, x[i]);
  return static_cast<std::uint32_t>(largest);
}

template struct ElementwiseLoops<target_isa>;

}  // namespace halfscope
