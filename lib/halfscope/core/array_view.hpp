// Views of numbers as memory holds them: FP32 everywhere, and on the device 16 bits where precision is
// native.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <halfscope/core/dtype.hpp>
#include <halfscope/core/error.hpp>

namespace halfscope {

/// Numbers to read, of any storage; made from anything that is a span of floats.
struct ConstArrayView {
  const void* data = nullptr;
  std::size_t count = 0;
  DType storage = DType::f32;

  ConstArrayView() = default;
  ConstArrayView(const void* first, std::size_t elements, DType stored)
      : data(first), count(elements), storage(stored) {}
  template <typename Range>
  // Kernels take it from everything that is a span. NOLINTNEXTLINE(bugprone-forwarding-reference-overload)
  requires std::convertible_to<Range, std::span<const float>> ConstArrayView(Range&& floats) {
    const std::span<const float> values(floats);
    data = values.data();
    count = values.size();
  }

  [[nodiscard]] std::size_t size() const { return count; }
  [[nodiscard]] bool empty() const { return count == 0; }
  /// Throws InvalidArgument unless they are stored as floats, as all numbers on the CPU are.
  [[nodiscard]] std::span<const float> floats() const {
    if (storage != DType::f32) throw InvalidArgument("numbers of 16 bits are not for this operation");
    return {static_cast<const float*>(data), count};
  }
  [[nodiscard]] ConstArrayView part(std::size_t first, std::size_t elements) const {
    return {static_cast<const std::byte*>(data) + first * bytes_per_element(storage), elements, storage};
  }
};

/// The same to write.
struct ArrayView {
  void* data = nullptr;
  std::size_t count = 0;
  DType storage = DType::f32;

  ArrayView() = default;
  ArrayView(void* first, std::size_t elements, DType stored)
      : data(first), count(elements), storage(stored) {}
  template <typename Range>
  requires std::convertible_to<Range, std::span<float>> ArrayView(Range&& floats) {  // NOLINT: as above
    const std::span<float> values(floats);
    data = values.data();
    count = values.size();
  }
  operator ConstArrayView() const { return {data, count, storage}; }

  [[nodiscard]] std::size_t size() const { return count; }
  [[nodiscard]] bool empty() const { return count == 0; }
  /// Throws InvalidArgument unless they are stored as floats.
  [[nodiscard]] std::span<float> floats() const {
    if (storage != DType::f32) throw InvalidArgument("numbers of 16 bits are not for this operation");
    return {static_cast<float*>(data), count};
  }
  [[nodiscard]] ArrayView part(std::size_t first, std::size_t elements) const {
    return {static_cast<std::byte*>(data) + first * bytes_per_element(storage), elements, storage};
  }
};

}  // namespace halfscope
