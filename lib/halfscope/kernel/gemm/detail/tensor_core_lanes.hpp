// One step of a tensor core for a strip of rows, a lane per column, in integers; only for *_simd.cpp, which
// are compiled once per instruction set.
#pragma once

#include <type_traits>

#include <halfscope/kernel/detail/vector.hpp>
#include <halfscope/kernel/gemm/detail/tensor_core_pack.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

HALFSCOPE_HD Ints smaller(Ints x, Ints y) {
  return x < y ? x : y;
}

/// While it lives, this thread's FP32 operations round toward zero. Only for processors without instructions
/// that have a rounding mode of their own. Compilers do not know of it: code that it governs is called out of
/// line. In a step, only `truncate_to_float` rounds; all else is exact or in integers.
class RoundsTowardZero {
#if defined(__SSE2__) && !defined(__AVX512F__)
 public:
  RoundsTowardZero() {
    _mm_setcsr((before_ & ~unsigned{_MM_ROUND_MASK}) | _MM_ROUND_TOWARD_ZERO);
  }
  ~RoundsTowardZero() {
    _mm_setcsr(before_);
  }
  RoundsTowardZero(const RoundsTowardZero&) = delete;
  RoundsTowardZero& operator=(const RoundsTowardZero&) = delete;

 private:
  unsigned before_ = _mm_getcsr();
#endif
};

/// `total` as a float, cut off to 24 bits, under `RoundsTowardZero`; not of -2^31.
HALFSCOPE_HD FloatVec truncate_to_float(Ints total) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvt_roundepi32_ps(0xFFFF, reinterpret_cast<__m512i>(total),
                                        _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif defined(__SSE2__)
  return __builtin_convertvector(total, FloatVec);
#else
  const Ints sign = total >> 31;
  const Ints magnitude = as_ints(as_words(total ^ sign) - as_words(sign));
  FloatVec nearest = __builtin_convertvector(magnitude, FloatVec);
  nearest = nearest < 2147483520.0f ? nearest : all_lanes(2147483520.0f);  // the largest float below 2^31
  const Ints rounded_up = (magnitude - __builtin_convertvector(nearest, Ints)) >> 31;
  return as_floats((as_ints(nearest) + rounded_up) | (sign << 31));
#endif
}

/// The scales that make integers of a step's numbers, from the least sum of two parts among its products.
/// FP16's scales are in range: scaling is an addition to the exponent field, which makes 1/2 at
/// most of a zero.
template <typename Parts>
struct NarrowScales : Parts {
  static constexpr std::int32_t most = 126;  ///< beyond it all products are zeros
  static constexpr bool has_exceptions = false;

  template <std::size_t q>
  HALFSCOPE_HD static Ints of_products(Words least) {
    constexpr std::uint32_t field = 0xFFu << 23;
    return as_ints((q < 3 ? least << (23 - 8 * q) : least >> 1) & field);
  }
  HALFSCOPE_HD static Ints with_sum(Ints products, FloatVec c, std::int32_t fraction_bits, Ints&) {
    return smaller(products, ((127 + fraction_bits) << 23) - (as_ints(c) & (0xFF << 23)));
  }
  /// Unsigned, since infinities and NaNs, which are told apart otherwise, wrap around.
  HALFSCOPE_HD static FloatVec up(FloatVec x, Ints scale) {
    return as_floats(as_ints(as_words(as_ints(x)) + as_words(scale)));
  }
  HALFSCOPE_HD static FloatVec down(FloatVec x, Ints scale) { return x * as_floats((127 << 23) - scale); }
};
using Fp16Scales = NarrowScales<Fp16Parts>;
using Fp8Scales = NarrowScales<Fp8Parts>;

/// Scales for any format: lanes that are out of range are negative in `exceptional`, unless all terms are
/// zeros.
struct WideScales : WideParts {
  static constexpr std::int32_t most = 0xFFFF;
  static constexpr bool has_exceptions = true;
  /// Between them, scaled numbers are normal floats or too small to count.
  static constexpr std::int32_t lowest = -95, highest = 115, no_product = 500;

  template <std::size_t q>
  HALFSCOPE_HD static Ints of_products(Words least) {
    return as_ints((least >> (16 * q)) & 0xFFFFu) - bias;
  }
  HALFSCOPE_HD static Ints with_sum(Ints products, FloatVec c, std::int32_t fraction_bits,
                                    Ints& exceptional) {
    const Ints all = smaller(products, (127 + fraction_bits) - (magnitude_of(c) >> 23));
    const Ints any_term = (products - no_product) | (Ints{} - magnitude_of(c));
    exceptional |= (all - lowest) | ((highest - all) & any_term);
    // Unsigned, since lanes that are out of range wrap around.
    return as_ints(as_words(smaller(all, Ints{} + highest) + 127) << 23);
  }
  HALFSCOPE_HD static FloatVec up(FloatVec x, Ints scale) { return x * as_floats(scale); }
  HALFSCOPE_HD static FloatVec down(FloatVec x, Ints scale) {
    return x * as_floats(as_ints(Words{} + (254u << 23) - as_words(scale)));
  }
};

/// The least sum of packed exponents of a strip's rows and a vector's columns, over the words of some steps.
template <typename Scales>
struct LeastSums {
  using Part [[gnu::vector_size(vector_bytes)]] = typename Scales::Part;

  Part parts[strip_rows];

  HALFSCOPE_HD LeastSums(const std::uint32_t* a, const std::uint32_t* b, std::size_t words) {
    for (Part& part : parts) part = Part{} + static_cast<typename Scales::Part>(Scales::most);
    for (std::size_t w = 0; w < words; ++w) {
      Words b_w;
      std::memcpy(&b_w, b + w * lanes, sizeof b_w);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < strip_rows; ++i) {
        const Part sum = reinterpret_cast<Part>(b_w + as_words(all_lanes(a[i * word_stride + w])));
        parts[i] = parts[i] < sum ? parts[i] : sum;
      }
    }
  }

  /// The products' scale of step `q` of those that share the words.
  template <std::size_t q>
  [[nodiscard]] HALFSCOPE_HD Ints scale(std::size_t row) const {
    return Scales::template of_products<q>(reinterpret_cast<Words>(parts[row]));
  }
};

/// A step's operands: rows of a, `value_stride` apart, and a vector's columns of b, term by term.
struct StepOperands {
  const float* a;
  const float* b;
  std::size_t terms;
};

using Strip = FloatVec[strip_rows];

HALFSCOPE_HD void copy_strip(const Strip& from, Strip& to) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < strip_rows; ++i) to[i] = from[i];
}

/// The step by its definition, lane by lane. `scale` is that of a and c.
[[gnu::noinline]] void define_step(const StepOperands& operands, const TensorCoreStep& step, float scale,
                                   Strip& c) {
  float a[64], b[64];
  for (std::size_t i = 0; i < strip_rows; ++i) {
    for (std::size_t k = 0; k < operands.terms; ++k) a[k] = operands.a[i * value_stride + k] / scale;
    for (std::size_t n = 0; n < lanes; ++n) {
      for (std::size_t k = 0; k < operands.terms; ++k) b[k] = operands.b[k * lanes + n];
      c[i][n] = fused_step({a, operands.terms}, {b, operands.terms}, c[i][n] / scale, step) * scale;
    }
  }
}

/// The same on a copy: sums whose address is never taken stay in registers.
HALFSCOPE_HD void defined_step(const StepOperands& operands, const TensorCoreStep& step, float scale,
                               Strip& c) {
  Strip in_memory;
  copy_strip(c, in_memory);
  define_step(operands, step, scale, in_memory);
  copy_strip(in_memory, c);
}

/// Whether the true sum of 16 products and a number may differ from `sum`: of less than 17 * 2^27, at a
/// multiple of 2^32 from it.
HALFSCOPE_HD bool any_wrapped(const Ints (&sum)[strip_rows]) {
  constexpr std::int32_t smallest = 0x7C000000;
  Ints wrapped{};
#pragma GCC unroll 8
  for (std::size_t i = 0; i < strip_rows; ++i) wrapped |= (sum[i] > smallest) | (sum[i] < -smallest);
  return any_negative(wrapped);
}

/// x + y as a float, cut off to 24 bits, under `RoundsTowardZero`; neither is beyond 2^31 - 2^26.
HALFSCOPE_HD FloatVec truncate_sum_to_float(Ints x, Ints y) {
  const Ints differing = x ^ y, floor = (x & y) + (differing >> 1);
  const Ints half = floor - ((floor >> 31) & -(differing & 1));  // toward zero: one more where it is odd
  const FloatVec twice = truncate_to_float(half) * 2.0f;
  const FloatVec whole = truncate_to_float(as_ints(as_words(x) + as_words(y)));
  // Beyond 2^30 the sum may not fit, and loses its last bit in any case.
  const Ints magnitude = larger(half, -half);
  return magnitude >= (1 << 29) ? twice : whole;
}

/// The step of 16 or 32 FP8 products: sums of 16 fit 32 bits. Results may have fewer bits than FP32.
template <std::size_t most_products>
HALFSCOPE_HD void add_fp8_step(const StepOperands& operands, const Ints* products, const TensorCoreStep& step,
                               Strip& c) {
  Ints scale[strip_rows], sum[strip_rows], first[strip_rows];
  Ints exceptional{};
  for (std::size_t i = 0; i < strip_rows; ++i) {
    scale[i] = Fp8Scales::with_sum(products[i], c[i], step.fraction_bits, exceptional);
    sum[i] = __builtin_convertvector(Fp8Scales::up(c[i], scale[i]), Ints);
    first[i] = Ints{};
  }
  const auto add_products = [&](std::size_t from, std::size_t end) {
    for (std::size_t k = from; k < end; ++k) {
      const FloatVec b = load(operands.b + k * lanes);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < strip_rows; ++i) {
        const FloatVec product = all_lanes(operands.a[i * value_stride + k]) * b;
        sum[i] = as_ints(as_words(sum[i]) +
                         as_words(__builtin_convertvector(Fp8Scales::up(product, scale[i]), Ints)));
      }
    }
  };
  constexpr std::size_t summed = 16;
  add_products(0, smaller(summed, operands.terms));
  if constexpr (most_products > summed) {
    for (std::size_t i = 0; i < strip_rows; ++i) {
      first[i] = sum[i];
      sum[i] = Ints{};
    }
    add_products(summed, operands.terms);
  }
  const std::int32_t kept_bits = -(1 << (23 - step.result.mantissa_bits));
  const Ints kept = Ints{} + kept_bits;
  for (std::size_t i = 0; i < strip_rows; ++i) {
    const FloatVec cut = truncate_sum_to_float(first[i], sum[i]);
    c[i] = Fp8Scales::down(as_floats(as_ints(cut) & kept), scale[i]);
  }
}

/// c[i] + the products of the step; products[i] is what their exponents allow. Products are exact floats, and
/// so are they times a power of two; conversion to integer cuts off what lies below it.
template <typename Scales, std::size_t most_products>
HALFSCOPE_HD void add_step(const StepOperands& operands, const Ints* products, const TensorCoreStep& step,
                           Strip& c) {
  if constexpr (std::is_same_v<Scales, Fp8Scales>)
    return add_fp8_step<most_products>(operands, products, step, c);
  Ints scale[strip_rows], sum[strip_rows];
  Ints exceptional{};
  for (std::size_t i = 0; i < strip_rows; ++i) {
    scale[i] = Scales::with_sum(products[i], c[i], step.fraction_bits, exceptional);
    sum[i] = __builtin_convertvector(Scales::up(c[i], scale[i]), Ints);
  }
  const auto add_products_of = [&](std::size_t k) {
    const FloatVec b = load(operands.b + k * lanes);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < strip_rows; ++i) {
      const float* a = operands.a + i * value_stride + k;
      const FloatVec product = most_products <= 8 ? times_lanes(a, b) : all_lanes(*a) * b;
      sum[i] =
          as_ints(as_words(sum[i]) + as_words(__builtin_convertvector(Scales::up(product, scale[i]), Ints)));
    }
  };
  if (most_products <= 8 && operands.terms == most_products) {
#pragma GCC unroll 16
    for (std::size_t k = 0; k < most_products; ++k) add_products_of(k);
  } else {
    for (std::size_t k = 0; k < operands.terms; ++k) add_products_of(k);
  }
  if constexpr (most_products > 8) {
    Ints large{};
    for (const Ints& x : sum) large |= as_ints(as_words(x) + 0x40000000u);
    if (any_negative(large) && any_wrapped(sum)) return defined_step(operands, step, Scales::scale, c);
  }
  if (Scales::has_exceptions && any_negative(exceptional))
    return defined_step(operands, step, Scales::scale, c);
  for (std::size_t i = 0; i < strip_rows; ++i) c[i] = Scales::down(truncate_to_float(sum[i]), scale[i]);
}

/// The same where FP16 or FP8 numbers may be infinite or NaN: then plain floating point tells what comes out.
template <typename Scales, std::size_t most_products>
[[gnu::noinline]] void add_special_step(const StepOperands& operands, const Ints* products,
                                        const TensorCoreStep& step, Strip& c) {
  Strip plain;
  for (std::size_t i = 0; i < strip_rows; ++i) {
    plain[i] = c[i];
    for (std::size_t k = 0; k < operands.terms; ++k)
      plain[i] += all_lanes(operands.a[i * value_stride + k]) * load(operands.b + k * lanes);
  }
  add_step<Scales, most_products>(operands, products, step, c);
  for (std::size_t i = 0; i < strip_rows; ++i) {
    const Ints infinity = all_lanes(infinity_bits), magnitude = magnitude_of(plain[i]);
    const FloatVec special = magnitude > infinity ? as_floats(all_lanes(0x7FFFFFFFu)) : plain[i];
    c[i] = magnitude >= infinity ? special : c[i];
  }
}

}  // namespace
}  // namespace halfscope
