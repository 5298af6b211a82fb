// Matrix products as tensor cores add them up, compiled once per instruction set: a lane per column, all of a
// step's products in integers.
#include <halfscope/kernel/gemm.hpp>
#include <halfscope/kernel/tensor_core_pack.hpp>
#include <halfscope/kernel/vector.hpp>

namespace halfscope {
namespace {

using Shorts [[gnu::vector_size(vector_bytes)]] = std::int16_t;

HALFSCOPE_HD Ints larger(Ints x, Ints y) {
  return x > y ? x : y;
}

HALFSCOPE_HD bool any_negative(Ints x) {
#if defined(__AVX512DQ__)
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(x)) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps(reinterpret_cast<__m256>(x)) != 0;
#else
  std::int32_t all = 0;
  for (std::size_t i = 0; i < lanes; ++i) all |= x[i];
  return all < 0;
#endif
}

/// Scaling by 2^(bits - largest) and back, exact powers of two.
struct Scale {
  Floats up, down;
};
HALFSCOPE_HD Scale scale_of(Ints largest, int bits) {
  // Unsigned, since lanes that are out of range, and computed again by the definition, wrap around.
  const auto up = as_words((127 + bits) - larger(largest, Ints{} + lowest_exponent)) << 23;
  return {as_floats(as_ints(up)), as_floats(as_ints(as_words(Ints{} + (254 << 23)) - up))};
}

/// The exponents of the accumulators. Those of zeros are below every limit, as those of subnormal numbers
/// are; those of infinities and NaNs are above.
HALFSCOPE_HD Ints accumulator_exponents(Floats c) {
  return as_ints(as_words(as_ints(c) << 1) >> 24) - 127;
}

/// Negative in lanes that need the definition: `largest` is out of range, and not since all terms are zeros.
/// A comparison would go through a mask register and back.
HALFSCOPE_HD Ints out_of_range(Ints largest, Ints largest_of_products, Floats c) {
  const Ints any_term = ~(largest_of_products - no_product) | (Ints{} - (as_ints(c) & 0x7FFFFFFF));
  return (highest_exponent - 1 - largest) | ((largest - (lowest_exponent + 1)) & any_term);
}

/// `total` as a float, cut off to 24 bits; not of -2^31.
HALFSCOPE_HD Floats truncate_to_float(Ints total) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvt_roundepi32_ps(0xFFFF, reinterpret_cast<__m512i>(total),
                                        _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
  const Ints sign = total >> 31;
  const Ints magnitude = (total ^ sign) - sign;
  Floats nearest = __builtin_convertvector(magnitude, Floats);
  nearest = nearest < 2147483520.0f ? nearest : all_lanes(2147483520.0f);  // the largest float below 2^31
  const Ints rounded_up = (magnitude - __builtin_convertvector(nearest, Ints)) >> 31;
  return as_floats((as_ints(nearest) + rounded_up) | (sign << 31));
#endif
}

/// One step's operands, packed: a term of a is `strip_rows` numbers, one of b is `lanes`.
struct StepOperands {
  const float* a;
  const std::uint32_t* a_exponents;
  const float* b;
  const std::uint32_t* b_exponents;
};

using Strip = Floats[strip_rows];

/// The step by its definition, lane by lane.
[[gnu::noinline]] void scalar_step(const StepOperands& operands, const TensorCoreStep& step, Strip& c) {
  const auto products = static_cast<std::size_t>(step.products);
  float a[64], b[64];
  for (std::size_t i = 0; i < strip_rows; ++i) {
    for (std::size_t k = 0; k < products; ++k) a[k] = operands.a[k * strip_rows + i];
    for (std::size_t n = 0; n < lanes; ++n) {
      for (std::size_t k = 0; k < products; ++k) b[k] = operands.b[k * lanes + n];
      c[i][n] = fused_step({a, products}, {b, products}, c[i][n], step);
    }
  }
}

/// The largest exponent among each row's products, two terms at a time.
template <std::size_t products>
HALFSCOPE_HD void find_largest_exponents(const StepOperands& operands, Ints (&largest)[strip_rows]) {
  Shorts pairs[strip_rows];
  for (Shorts& e : pairs) e = Shorts{} + static_cast<std::int16_t>(2 * zero_exponent);
  for (std::size_t k = 0; k < products / 2; ++k) {
    Shorts b;
    std::memcpy(&b, operands.b_exponents + k * lanes, sizeof b);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < strip_rows; ++i) {
      const Shorts sum = b + reinterpret_cast<Shorts>(all_lanes(operands.a_exponents[k * strip_rows + i]));
      pairs[i] = pairs[i] > sum ? pairs[i] : sum;
    }
  }
  for (std::size_t i = 0; i < strip_rows; ++i) {
    const Ints both = reinterpret_cast<Ints>(pairs[i]);
    largest[i] = larger(both >> 16, (both << 16) >> 16);
  }
}

/// c[i] + the products of the step. Products are exact floats, and so are they times a power of two;
/// conversion to integer cuts off what lies below it. Eight and the accumulator fit 31 bits, twice eight are
/// checked. Where all products are zeros, the accumulator comes back as it was.
template <std::size_t products>
void vector_step(const StepOperands& operands, const TensorCoreStep& step, Strip& c) {
  Ints largest[strip_rows];
  find_largest_exponents<products>(operands, largest);
  Scale scale[strip_rows];
  Ints exceptional{};
  for (std::size_t i = 0; i < strip_rows; ++i) {
    const Ints all = larger(largest[i], accumulator_exponents(c[i]));
    exceptional |= out_of_range(all, largest[i], c[i]);
    scale[i] = scale_of(all, step.fraction_bits);
  }
  if (any_negative(exceptional)) return scalar_step(operands, step, c);
  constexpr std::size_t half = products < 8 ? products : 8;
  Ints sum[products / half][strip_rows];
  for (std::size_t i = 0; i < strip_rows; ++i) sum[0][i] = __builtin_convertvector(c[i] * scale[i].up, Ints);
  for (std::size_t h = 0; h < products / half; ++h) {
    if (h > 0)
      for (Ints& s : sum[h]) s = Ints{};
    for (std::size_t k = h * half; k < (h + 1) * half; ++k) {
      const Floats b = load(operands.b + k * lanes);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < strip_rows; ++i) {
        const Floats product = all_lanes(operands.a[k * strip_rows + i]) * b;
        sum[h][i] += __builtin_convertvector(product * scale[i].up, Ints);
      }
    }
  }
  if constexpr (products > half) {
    Ints too_large{};
    for (std::size_t i = 0; i < strip_rows; ++i) {
      const Ints total = as_ints(as_words(sum[0][i]) + as_words(sum[1][i]));
      const Ints negated = as_ints(Words{} - as_words(total));
      too_large |= ((sum[0][i] ^ total) & (sum[1][i] ^ total)) | (total & negated);  // or -2^31
      sum[0][i] = total;
    }
    if (any_negative(too_large)) return scalar_step(operands, step, c);
  }
  for (std::size_t i = 0; i < strip_rows; ++i) c[i] = truncate_to_float(sum[0][i]) * scale[i].down;
}

/// Steps with more products or fewer bits than an accumulator's are left to the definition.
void do_step(const StepOperands& operands, const TensorCoreStep& step, Strip& c) {
  if (step.fraction_bits < 23) return scalar_step(operands, step, c);
  switch (step.products) {
    case 4:
      return vector_step<4>(operands, step, c);
    case 8:
      return vector_step<8>(operands, step, c);
    case 16:
      return vector_step<16>(operands, step, c);
    default:
      return scalar_step(operands, step, c);
  }
}

/// A corner of c: up to `strip_rows` rows of up to `lanes` columns.
struct Corner {
  float* c;
  std::size_t stride, rows, columns;
};

void run_strip(const StepOperands& operands, const TensorCoreStep& step, const Pass& pass,
               const Corner& corner) {
  Strip c{};
  for (std::size_t i = 0; pass.first > 0 && i < corner.rows; ++i) {
    std::memcpy(&c[i], corner.c + i * corner.stride, corner.columns * sizeof(float));
  }
  const auto products = static_cast<std::size_t>(step.products);
  for (std::size_t k = 0; k < pass.padded; k += products) {
    do_step({operands.a + k * strip_rows, operands.a_exponents + k / 2 * strip_rows, operands.b + k * lanes,
             operands.b_exponents + k / 2 * lanes},
            step, c);
  }
  for (std::size_t i = 0; i < corner.rows; ++i) {
    std::memcpy(corner.c + i * corner.stride, &c[i], corner.columns * sizeof(float));
  }
}

}  // namespace

template <Isa isa>
void gemm_tensor_core_rows_isa(const GatherMatrix& a, const DenseMatrix& b, float* c, const RowRange& rows,
                               const TensorCoreStep& step) {
  const auto first = static_cast<std::size_t>(rows.first), last = static_cast<std::size_t>(rows.last);
  const auto columns = static_cast<std::size_t>(b.columns), depth = a.column.size();
  const auto products = static_cast<std::size_t>(step.products);
  const std::size_t a_size = (last - first + strip_rows) * depth_block;
  const Packed packed_a{new float[a_size], new std::uint32_t[a_size / 2]};
  alignas(64) float b_value[depth_block * lanes];
  alignas(64) std::uint32_t b_exponents[depth_block / 2 * lanes];
  for (std::size_t k = 0; k == 0 || k < depth; k += depth_block) {
    const std::size_t count = smaller(depth_block, depth - k);
    const Pass pass{k, count, (count + products - 1) / products * products};
    pack_rows(a, rows, pass, packed_a, step.input);
    for (std::size_t n = 0; n < columns; n += lanes) {
      const std::size_t width = smaller(lanes, columns - n);
      pack_columns(b, n, pass, {b_value, b_exponents}, step.input);
      for (std::size_t m = first; m < last; m += strip_rows) {
        const std::size_t offset = (m - first) * pass.padded;
        run_strip({packed_a.value + offset, packed_a.exponents + offset / 2, b_value, b_exponents}, step,
                  pass, {c + m * columns + n, columns, smaller(strip_rows, last - m), width});
      }
    }
  }
  delete[] packed_a.value;
  delete[] packed_a.exponents;
}
template void gemm_tensor_core_rows_isa<target_isa>(const GatherMatrix&, const DenseMatrix&, float*,
                                                    const RowRange&, const TensorCoreStep&);

}  // namespace halfscope
