// Elements of any storage by index, for the bodies of kernels: read as FP32, written by rounding to nearest
// even.
#pragma once

#include <cstddef>
#include <cstdint>

#include <halfscope/core/array_view.hpp>
#include <halfscope/format/bits.hpp>

namespace halfscope {

/// The number of an FP16 code, exactly; on a CPU a NaN keeps its payload.
[[nodiscard]] HALFSCOPE_HD float float_of_half(std::uint16_t code) {
#if defined(__CUDA_ARCH__)
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(code));
  return x;
#else
  const std::uint32_t magnitude = (code & 0x7FFFu) << 13, sign = (code & 0x8000u) << 16;
  // Exponents differ by 112 in their bias; a multiplication takes subnormals along.
  if (magnitude < 0x0F800000u) return from_bits(to_bits(from_bits(magnitude) * 0x1p112f) | sign);
  return from_bits(magnitude | infinity_bits | sign);
#endif
}

/// The FP16 code nearest to `x`, ties to even; any NaN becomes 0x7FFF, as the instruction of GPUs has it.
[[nodiscard]] HALFSCOPE_HD std::uint16_t half_of_float(float x) {
#if defined(__CUDA_ARCH__)
  std::uint16_t code;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
  return code;
#else
  constexpr std::uint32_t min_normal = 0x38800000u, first_infinite = 0x477FF000u, rebias = 112u << 23;
  const std::uint32_t magnitude = magnitude_bits(x), sign = to_bits(x) >> 16 & 0x8000u;
  std::uint32_t code = 0;
  if (magnitude > infinity_bits) return 0x7FFFu;
  if (magnitude >= first_infinite) {
    code = 0x7C00u;
  } else if (magnitude < min_normal) {
    // The sum's last place is a subnormal's unit, so adding rounds.
    code = to_bits(from_bits(magnitude) + 0.5f) - to_bits(0.5f);
  } else {
    code = (magnitude - rebias + 0xFFFu + (magnitude >> 13 & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(code | sign);
#endif
}

[[nodiscard]] HALFSCOPE_HD float float_of_bfloat(std::uint16_t code) {
  return from_bits(std::uint32_t{code} << 16);
}

/// The BF16 code nearest to `x`, ties to even; any NaN becomes 0x7FFF.
[[nodiscard]] HALFSCOPE_HD std::uint16_t bfloat_of_float(float x) {
  const std::uint32_t bits = to_bits(x);
  if (magnitude_bits(x) > infinity_bits) return 0x7FFFu;
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

/// The storage is the same for all threads of a kernel, so that they branch together.
struct ElementReader {
  const void* data = nullptr;
  DType storage = DType::f32;

  ElementReader() = default;
  HALFSCOPE_HD ElementReader(const void* first, DType stored) : data(first), storage(stored) {}
  HALFSCOPE_HD ElementReader(const float* first) : data(first) {}  // NOLINT: floats are the usual elements
  explicit ElementReader(const ConstArrayView& values) : data(values.data), storage(values.storage) {}

  [[nodiscard]] HALFSCOPE_HD float operator[](std::int64_t i) const {
    if (storage == DType::f32) return static_cast<const float*>(data)[i];
    const std::uint16_t code = static_cast<const std::uint16_t*>(data)[i];
    return storage == DType::f16 ? float_of_half(code) : float_of_bfloat(code);
  }
  /// From element `first` on.
  [[nodiscard]] HALFSCOPE_HD ElementReader from(std::int64_t first) const {
    const auto bytes = static_cast<std::int64_t>(bytes_per_element(storage));
    return {static_cast<const std::byte*>(data) + first * bytes, storage};
  }
  /// Throws InvalidArgument unless they are stored as floats.
  [[nodiscard]] const float* floats() const { return ConstArrayView(data, 0, storage).floats().data(); }
};

struct ElementWriter {
  void* data = nullptr;
  DType storage = DType::f32;

  HALFSCOPE_HD void set(std::int64_t i, float x) const {
    if (storage == DType::f32) {
      static_cast<float*>(data)[i] = x;
    } else {
      static_cast<std::uint16_t*>(data)[i] = storage == DType::f16 ? half_of_float(x) : bfloat_of_float(x);
    }
  }
};

}  // namespace halfscope
