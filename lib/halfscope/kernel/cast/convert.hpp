// Copies numbers from one storage to another.
#pragma once

#include <cstddef>
#include <span>

#include <halfscope/core/random.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

/// to[i] = from[i], rounded to nearest even where `to` has fewer bits: numbers of its format stay what they
/// are. Throws InvalidArgument if their sizes differ.
void convert(const ConstArrayView& from, const ArrayView& to);

/// to[i] = round(from[i], q, rounding_bits(stream, i)), whose format is one that `to` holds. Throws
/// InvalidArgument if their sizes differ.
void round_into(std::span<const float> from, const ArrayView& to, const Quantizer& q,
                const RandomStream& stream);

/// The same numbers in `storage`; an array that has it already is handed through.
[[nodiscard]] Array to_dtype(Array array, DType storage);
/// A copy of `array` in `storage`.
[[nodiscard]] Array stored_copy(const Array& array, DType storage);
/// As floats in host memory.
[[nodiscard]] Array to_host_floats(const Array& array);

/// The numbers of an array that outlives it as floats: its own, or a copy where it has 16 bits.
class FloatsOf {
 public:
  explicit FloatsOf(const Array& array);
  [[nodiscard]] std::span<const float> values() const { return values_; }
  [[nodiscard]] const float* data() const { return values_.data(); }

 private:
  Array copy_;
  std::span<const float> values_;
};

/// out[i] = element i of `in`, `out.size()` little-endian elements of `type` without alignment. Types of up
/// to 32 bits keep their value exactly, and NaN its payload. f64 is rounded to odd (to zero, then the last
/// bit set where anything was lost; Boldo and Melquiond 2008), so that rounding the float to a format of up
/// to 22 significand bits gives what rounding the double would; it is never zero nor infinite where the
/// double was not.
void widen(DType type, const std::byte* in, std::span<float> out);

/// convert and round_into on the device, which they call where that is the active one.
namespace cuda {
void convert(const ConstArrayView& from, const ArrayView& to);
void round_into(std::span<const float> from, const ArrayView& to, const Quantizer& q,
                const RandomStream& stream);
}  // namespace cuda

}  // namespace halfscope
