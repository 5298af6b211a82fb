// An owning n-dimensional array: knows its device, its storage type and its shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <halfscope/core/names.hpp>

namespace halfscope {

enum class Device : std::uint8_t { cpu, cuda };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<Device>{"cpu", "cuda"};

/// What an element is in memory: float32 where precision is emulated.
enum class Storage : std::uint8_t { float32 };
template <>
inline constexpr std::array<std::string_view, 1> enum_names<Storage>{"float32"};

/// Extents, slowest-varying first; the empty shape is a scalar.
using Shape = std::vector<std::int64_t>;

[[nodiscard]] std::size_t element_count(const Shape& shape);
[[nodiscard]] std::string to_string(const Shape& shape);

namespace detail {
/// Returns the memory to the pool of buffers that later arrays of this size reuse.
struct ReleaseBuffer {
  std::size_t bytes = 0;
  void operator()(float* memory) const noexcept;
};
}  // namespace detail

/// Row-major, contiguous, 64-byte aligned. Moves, never copies silently: `clone` copies. A moved-from array
/// is empty.
class Array {
 public:
  Array() = default;
  /// Uninitialised elements. Throws RequestError for Device::cuda in a build without CUDA.
  explicit Array(Shape shape, Device device = Device::cpu);
  [[nodiscard]] static Array zeros(Shape shape);
  [[nodiscard]] static Array from(Shape shape, std::initializer_list<float> values);

  Array(Array&& other) noexcept
      : shape_(std::move(other.shape_)),
        size_(std::exchange(other.size_, 0)),
        device_(other.device_),
        data_(std::move(other.data_)) {}
  Array& operator=(Array&& other) noexcept {
    shape_ = std::move(other.shape_);
    size_ = std::exchange(other.size_, 0);
    device_ = other.device_;
    data_ = std::move(other.data_);
    return *this;
  }
  [[nodiscard]] Array clone() const;

  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] Storage storage() const { return Storage::float32; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::int64_t extent(std::size_t axis) const { return shape_.at(axis); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Same elements, another shape of the same count.
  void reshape(Shape shape);

  [[nodiscard]] float* data() { return data_.get(); }
  [[nodiscard]] const float* data() const { return data_.get(); }
  [[nodiscard]] std::span<float> values() { return {data(), size_}; }
  [[nodiscard]] std::span<const float> values() const { return {data(), size_}; }
  float& operator[](std::size_t i) { return data_.get()[i]; }
  float operator[](std::size_t i) const { return data_.get()[i]; }

 private:
  Shape shape_{0};
  std::size_t size_ = 0;
  Device device_ = Device::cpu;
  std::unique_ptr<float[], detail::ReleaseBuffer> data_;
};

}  // namespace halfscope
