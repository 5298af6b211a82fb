// Arrays on the device whose elements are of any stored type and lie apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <halfscope/core/dtype.hpp>

namespace halfscope {

/// An array as another library hands it over: extents, and strides in elements, slowest-varying axis first.
struct StridedArray {
  static constexpr std::size_t most_axes = 16;

  const std::byte* data = nullptr;
  DType type = DType::f32;
  std::size_t axes = 0;
  std::array<std::int64_t, most_axes> extents{}, strides{};
};

namespace cuda {
/// Queues: out[i] = element i of `array` in row-major order as `widen` makes it a float. Both are on the
/// device; `out` has as many elements.
void gather(const StridedArray& array, std::span<float> out);
}  // namespace cuda

}  // namespace halfscope
