// The loops that widen stored elements, compiled once per instruction set.
#include <halfscope/kernel/widen.hpp>

#include <cmath>
#include <cstring>

#include <halfscope/format/bits.hpp>
#include <halfscope/format/catalogue.hpp>

// Nothing here may be emitted out of line under a name that other translation units share: everything is in
// an unnamed namespace or always inlined.
namespace halfscope {
namespace {

/// The number of `code`, as `decode` gives it, without a branch. Signed arithmetic, since SSE2 and AVX2
/// compare signed integers only.
template <FloatFormat format>
HALFSCOPE_HD std::uint32_t widen_code(std::uint32_t code) {
  constexpr int m = format.mantissa_bits, width = 1 + format.exponent_bits + m;
  constexpr std::int32_t top_field = ((1 << format.exponent_bits) - 1) << 23;
  constexpr std::int32_t smallest_special =
      format.specials == Specials::ieee ? top_field : top_field + (((1 << m) - 1) << (23 - m));
  constexpr std::int32_t rebias = (127 - format.bias()) << 23;
  constexpr std::int32_t min_normal = rebias + (1 << 23);

  const auto magnitude = static_cast<std::int32_t>((code & ((1u << (width - 1)) - 1u)) << (23 - m));
  // A subnormal's mantissa counts units of the smallest normal's last place: put it below a one, take the one
  // away.
  const float above_one = from_bits(static_cast<std::uint32_t>(magnitude + min_normal));
  const auto subnormal = static_cast<std::int32_t>(to_bits(above_one - from_bits(min_normal)));
  std::int32_t result = magnitude < (1 << 23) ? subnormal : magnitude + rebias;
  result = magnitude >= smallest_special ? magnitude | static_cast<std::int32_t>(infinity_bits) : result;
  return static_cast<std::uint32_t>(result) | ((code >> (width - 1)) << 31);
}

template <typename Code, FloatFormat format>
void widen_codes(const std::byte* in, float* out, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    Code code;
    std::memcpy(&code, in + i * sizeof code, sizeof code);
    out[i] = from_bits(widen_code<format>(code));
  }
}

void widen_bf16(const std::byte* in, float* out, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t code;
    std::memcpy(&code, in + i * sizeof code, sizeof code);
    out[i] = from_bits(std::uint32_t{code} << 16);
  }
}

/// From the nearest float: one step towards zero where that is farther out than the double, then the last bit
/// set unless it is exact. The step back from infinity is the largest float, whose last bit is set.
void round_to_odd(const std::byte* in, float* out, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    double exact;
    std::memcpy(&exact, in + i * sizeof exact, sizeof exact);
    const auto nearest = static_cast<float>(exact);
    const std::uint32_t too_far = std::fabs(double{nearest}) > std::fabs(exact) ? 1 : 0;
    const std::uint32_t odd = (to_bits(nearest) - too_far) | 1u;
    const bool inexact = double{nearest} < exact || double{nearest} > exact;  // not for NaN
    out[i] = from_bits(inexact ? odd : to_bits(nearest));
  }
}

}  // namespace

template <>
void widen_isa<target_isa>(StoredType type, const std::byte* in, float* out, std::size_t count) {
  switch (type) {
    case StoredType::f16:
      return widen_codes<std::uint16_t, fp16>(in, out, count);
    case StoredType::bf16:
      return widen_bf16(in, out, count);
    case StoredType::f32:
      std::memcpy(out, in, count * sizeof(float));
      return;
    case StoredType::f64:
      return round_to_odd(in, out, count);
    case StoredType::f8_e4m3:
      return widen_codes<std::uint8_t, fp8_e4m3>(in, out, count);
    case StoredType::f8_e5m2:
      return widen_codes<std::uint8_t, fp8_e5m2>(in, out, count);
  }
}

}  // namespace halfscope
