// Views of numbers as memory holds them: FP32 everywhere, and on the device 16 bits where precision is
// native.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <halfscope/core/error.hpp>
#include <halfscope/core/names.hpp>

namespace halfscope {

/// What an element is in memory: float32 where precision is emulated.
enum class Storage : std::uint8_t { float32, float16, bfloat16 };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<Storage>{"float32", "float16", "bfloat16"};

[[nodiscard]] constexpr std::size_t bytes_per_element(Storage storage) {
  return storage == Storage::float32 ? 4 : 2;
}

/// Numbers to read, of any storage; made from anything that is a span of floats.
struct ConstValues {
  const void* data = nullptr;
  std::size_t count = 0;
  Storage storage = Storage::float32;

  ConstValues() = default;
  ConstValues(const void* first, std::size_t elements, Storage stored)
      : data(first), count(elements), storage(stored) {}
  template <typename Floats>
  requires std::convertible_to<Floats, std::span<const float>> ConstValues(
      Floats&& floats) {  // NOLINT: an overload for what is an argument of kernels everywhere
    const std::span<const float> values(floats);
    data = values.data();
    count = values.size();
  }

  [[nodiscard]] std::size_t size() const { return count; }
  [[nodiscard]] bool empty() const { return count == 0; }
  /// Throws RequestError unless they are stored as floats, as all numbers on the CPU are.
  [[nodiscard]] std::span<const float> floats() const {
    if (storage != Storage::float32) throw RequestError("numbers of 16 bits are not for this operation");
    return {static_cast<const float*>(data), count};
  }
  [[nodiscard]] ConstValues part(std::size_t first, std::size_t elements) const {
    return {static_cast<const std::byte*>(data) + first * bytes_per_element(storage), elements, storage};
  }
};

/// The same to write.
struct Values {
  void* data = nullptr;
  std::size_t count = 0;
  Storage storage = Storage::float32;

  Values() = default;
  Values(void* first, std::size_t elements, Storage stored) : data(first), count(elements), storage(stored) {}
  template <typename Floats>
  requires std::convertible_to<Floats, std::span<float>> Values(Floats&& floats) {  // NOLINT: as above
    const std::span<float> values(floats);
    data = values.data();
    count = values.size();
  }
  operator ConstValues() const { return {data, count, storage}; }

  [[nodiscard]] std::size_t size() const { return count; }
  [[nodiscard]] bool empty() const { return count == 0; }
  /// Throws RequestError unless they are stored as floats.
  [[nodiscard]] std::span<float> floats() const {
    if (storage != Storage::float32) throw RequestError("numbers of 16 bits are not for this operation");
    return {static_cast<float*>(data), count};
  }
  [[nodiscard]] Values part(std::size_t first, std::size_t elements) const {
    return {static_cast<std::byte*>(data) + first * bytes_per_element(storage), elements, storage};
  }
};

}  // namespace halfscope
