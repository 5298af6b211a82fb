// The loops that widen stored elements, compiled once per instruction set.
#include <halfscope/kernel/cast/detail/widen_simd.hpp>

#include <cstring>

#include <halfscope/kernel/cast/detail/widen_element.hpp>
#include <halfscope/kernel/detail/vector.hpp>

// Nothing here may be emitted out of line under a name that other translation units share: everything is in
// an unnamed namespace or always inlined.
namespace halfscope {
namespace {

template <typename Code, FloatFormat format>
void widen_codes(const std::byte* in, float* out, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    Code code;
    std::memcpy(&code, in + i * sizeof code, sizeof code);
    out[i] = from_bits(widen_code<format>(code));
  }
}

/// By the processor's conversion, and vectors with NaNs, whose payload it may change, by their codes.
void widen_fp16(const std::byte* in, float* out, std::size_t count) {
  std::size_t done = 0;
#if defined(__F16C__)
  for (; done + lanes <= count; done += lanes) {
    const std::byte* const codes = in + done * sizeof(std::uint16_t);
    const FloatVec x = load_fp16(codes);
    store(out + done, x);
    if (any_negative(x != x)) widen_codes<std::uint16_t, fp16>(codes, out + done, lanes);
  }
#endif
  widen_codes<std::uint16_t, fp16>(in + done * sizeof(std::uint16_t), out + done, count - done);
}

void widen_bf16(const std::byte* in, float* out, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t code;
    std::memcpy(&code, in + i * sizeof code, sizeof code);
    out[i] = from_bits(std::uint32_t{code} << 16);
  }
}

void round_to_odd(const std::byte* in, float* out, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    double exact;
    std::memcpy(&exact, in + i * sizeof exact, sizeof exact);
    out[i] = rounded_to_odd(exact);
  }
}

}  // namespace

template <>
void widen_isa<target_isa>(DType type, const std::byte* in, float* out, std::size_t count) {
  switch (type) {
    case DType::f16:
      return widen_fp16(in, out, count);
    case DType::bf16:
      return widen_bf16(in, out, count);
    case DType::f32:
      if (count > 0) std::memcpy(out, in, count * sizeof(float));
      return;
    case DType::f64:
      return round_to_odd(in, out, count);
    case DType::f8_e4m3:
      return widen_codes<std::uint8_t, fp8_e4m3>(in, out, count);
    case DType::f8_e5m2:
      return widen_codes<std::uint8_t, fp8_e5m2>(in, out, count);
  }
}

}  // namespace halfscope
