// An owning n-dimensional array: knows its device, its storage type and its shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <halfscope/core/array_view.hpp>
#include <halfscope/device/memory.hpp>

namespace halfscope {

/// Extents, slowest-varying first; the empty shape is a scalar.
using Shape = std::vector<std::int64_t>;

[[nodiscard]] std::size_t element_count(const Shape& shape);
[[nodiscard]] std::string to_string(const Shape& shape);

/// Row-major, contiguous, 64-byte aligned. Moves, never copies silently: `clone` copies. A moved-from array
/// is empty.
class Array {
 public:
  Array() = default;
  /// Uninitialised elements.
  explicit Array(Shape shape, Device device = active_device());
  Array(Shape shape, DType storage, Device device = active_device());
  [[nodiscard]] static Array zeros(Shape shape, DType storage = DType::f32);
  [[nodiscard]] static Array from(Shape shape, std::initializer_list<float> values);

  [[nodiscard]] Array clone() const { return to(device()); }
  /// A copy on `device`.
  [[nodiscard]] Array to(Device device) const;
  /// The only element of an array of one, from wherever it is; throws InvalidArgument where there are more.
  [[nodiscard]] float item() const;

  [[nodiscard]] Device device() const { return memory_.device(); }
  [[nodiscard]] DType dtype() const { return storage_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::int64_t extent(std::size_t axis) const { return shape_.at(axis); }
  [[nodiscard]] std::size_t size() const { return memory_.size() / bytes_per_element(storage_); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  /// Same elements, another shape of the same count.
  void reshape(Shape shape);

  /// The elements as they are stored.
  [[nodiscard]] ArrayView view() { return {memory_.data(), size(), storage_}; }
  [[nodiscard]] ConstArrayView view() const { return {memory_.data(), size(), storage_}; }
  /// The elements of an array of floats; throws InvalidArgument where they have 16 bits.
  [[nodiscard]] float* data() { return view().floats().data(); }
  [[nodiscard]] const float* data() const { return view().floats().data(); }
  [[nodiscard]] std::span<float> values() { return view().floats(); }
  [[nodiscard]] std::span<const float> values() const { return view().floats(); }
  /// Element i of an array on the CPU.
  float& operator[](std::size_t i) { return data()[i]; }
  float operator[](std::size_t i) const { return data()[i]; }

 private:
  Shape shape_{0};
  DType storage_ = DType::f32;
  Memory<std::byte> memory_;
};

}  // namespace halfscope
