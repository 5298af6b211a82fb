// Matrix products as tensor cores add them up, compiled once per instruction set: a lane per column, all of a
// step's products in integers.
#include <halfscope/kernel/gemm.hpp>
#include <halfscope/kernel/round_lanes.hpp>
#include <halfscope/kernel/vector.hpp>

namespace halfscope {
namespace {

/// Terms per pass, a multiple of every step's products: b's values and exponents stay in the first-level
/// cache.
constexpr std::size_t depth_block = 128;
constexpr std::size_t strip_rows = 4;

/// What a zero, and an infinity or NaN, count as: the sum with any other exponent is below every product's,
/// or beyond every limit.
constexpr int zero_exponent = -1000, special_exponent = 10000, no_product = -800;
/// Between them, the scaled numbers of a step are normal floats or too small to count; other steps are
/// scalar.
constexpr int lowest_exponent = -90, highest_exponent = 120;

HALFSCOPE_HD Ints larger(Ints x, Ints y) {
  return x > y ? x : y;
}

HALFSCOPE_HD Ints load_ints(const std::int32_t* from) {
  Ints x;
  std::memcpy(&x, from, sizeof x);
  return x;
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

/// Operands of one pass, term by term `width` numbers: rounded to the input format, and their exponents.
struct Packed {
  float* value;
  std::int32_t* exponent;
};

/// The exponent that a number of the input format has there: subnormal numbers have the smallest.
HALFSCOPE_HD std::int32_t exponent_of(float x, std::int32_t min_exponent) {
  const std::uint32_t magnitude = magnitude_bits(x);
  const auto exponent = static_cast<std::int32_t>(magnitude >> 23) - 127;
  const std::int32_t finite = exponent > min_exponent ? exponent : min_exponent;
  return magnitude == 0 ? zero_exponent : magnitude >= infinity_bits ? special_exponent : finite;
}

void round_and_decode(const Packed& packed, std::size_t count, const FloatFormat& format) {
  const RoundingGrid grid = rounding_grid({.format = format});
  const std::int32_t min_exponent = format.min_exponent();
  float* value = packed.value;
  std::int32_t* exponent = packed.exponent;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    value[i] = round_on_grid<Rounding::nearest_even>(value[i], grid);
    exponent[i] = exponent_of(value[i], min_exponent);
  }
}

/// Scaling by 2^(bits - largest) and back, exact powers of two.
struct Scale {
  Floats up, down;
};
HALFSCOPE_HD Scale scale_of(Ints largest, int bits) {
  const Ints up = (127 + bits) - larger(largest, Ints{} + lowest_exponent);
  return {as_floats(up << 23), as_floats((254 - up) << 23)};
}

/// The exponents of the accumulators; zeros among them have that of the subnormal numbers, below every limit.
HALFSCOPE_HD Ints accumulator_exponents(Floats c) {
  const Ints field = (as_ints(c) >> 23) & 255;
  const Ints exponent = larger(field, Ints{} + 1) - 127;
  return field == 255 ? Ints{} + special_exponent : exponent;
}

/// `magnitude`, not negative, cut off to 24 bits.
HALFSCOPE_HD Floats truncate_to_float(Ints magnitude) {
  Floats nearest = __builtin_convertvector(magnitude, Floats);
  nearest = nearest < 2147483520.0f ? nearest : all_lanes(2147483520.0f);  // the largest float below 2^31
  const Ints rounded_up = (magnitude - __builtin_convertvector(nearest, Ints)) >> 31;
  return as_floats(as_ints(nearest) + rounded_up);
}

/// One step's operands: a term of a is `strip_rows` numbers, one of b is `lanes`.
struct StepOperands {
  const float* a;
  const std::int32_t* a_exponent;
  const float* b;
  const std::int32_t* b_exponent;
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

/// c[i] + the products of the step. Products are exact floats, and so are they times a power of two;
/// conversion to integer cuts off what lies below it. Eight fit 32 bits, more are checked.
template <std::size_t products>
void vector_step(const StepOperands& operands, const TensorCoreStep& step, Strip& c) {
  Ints largest[strip_rows];
  for (Ints& e : largest) e = Ints{} + 2 * zero_exponent;
  for (std::size_t k = 0; k < products; ++k) {
    const Ints e = load_ints(operands.b_exponent + k * lanes);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < strip_rows; ++i) {
      largest[i] = larger(largest[i], e + operands.a_exponent[k * strip_rows + i]);
    }
  }
  Scale scale[strip_rows];
  Ints only_zeros[strip_rows], out_of_range{};
  for (std::size_t i = 0; i < strip_rows; ++i) {
    only_zeros[i] = largest[i] < no_product;
    largest[i] = larger(largest[i], accumulator_exponents(c[i]));
    out_of_range |= (largest[i] >= highest_exponent) | ((largest[i] <= lowest_exponent) & ~only_zeros[i]);
    scale[i] = scale_of(largest[i], step.fraction_bits);
  }
  if (any_negative(out_of_range)) return scalar_step(operands, step, c);
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
  Ints too_large{};
  Strip next;
  for (std::size_t i = 0; i < strip_rows; ++i) {
    Ints total = sum[0][i];
    if constexpr (products > half) {
      total = as_ints(as_words(sum[0][i]) + as_words(sum[1][i]));
      too_large |= (sum[0][i] ^ total) & (sum[1][i] ^ total);
    }
    const Ints sign = total >> 31;
    const Ints magnitude = as_ints(as_words(total ^ sign) - as_words(sign));
    too_large |= magnitude;
    const Floats rounded = truncate_to_float(magnitude) * scale[i].down;
    next[i] = only_zeros[i] ? c[i] + Floats{} : as_floats(as_ints(rounded) | (sign << 31));
  }
  if (any_negative(too_large)) return scalar_step(operands, step, c);
  for (std::size_t i = 0; i < strip_rows; ++i) c[i] = next[i];
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

/// The terms [first, first + count) of every sum, `padded` with zeros to whole steps.
struct Pass {
  std::size_t first, count, padded;
};

/// Strip after strip of a's rows; rows beyond the last are zeros.
void pack_rows(const GatherMatrix& a, const RowRange& rows, const Pass& pass, const Packed& packed,
               const FloatFormat& format) {
  float* value = packed.value;
  const auto first = static_cast<std::size_t>(rows.first), last = static_cast<std::size_t>(rows.last);
  for (std::size_t m = first; m < last; m += strip_rows) {
    for (std::size_t k = 0; k < pass.padded; ++k) {
      for (std::size_t i = m; i < m + strip_rows; ++i, ++value) {
        const bool inside = k < pass.count && i < last;
        *value = inside ? a.data[a.row[i] + a.column[pass.first + k]] : 0.0f;
      }
    }
  }
  round_and_decode(packed, static_cast<std::size_t>(value - packed.value), format);
}

/// `width` columns of b from `column` on; the rest of a vector's lanes are zeros.
void pack_columns(const DenseMatrix& b, std::size_t column, std::size_t width, const Pass& pass,
                  const Packed& packed) {
  std::memset(packed.value, 0, pass.padded * lanes * sizeof(float));
  const float* row = b.data + pass.first * static_cast<std::size_t>(b.columns) + column;
  for (std::size_t k = 0; k < pass.count; ++k, row += b.columns) {
    std::memcpy(packed.value + k * lanes, row, width * sizeof(float));
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
    do_step({operands.a + k * strip_rows, operands.a_exponent + k * strip_rows, operands.b + k * lanes,
             operands.b_exponent + k * lanes},
            step, c);
  }
  for (std::size_t i = 0; i < corner.rows; ++i) {
    std::memcpy(corner.c + i * corner.stride, &c[i], corner.columns * sizeof(float));
  }
}

HALFSCOPE_HD std::size_t smaller(std::size_t x, std::size_t y) {
  return x < y ? x : y;
}

}  // namespace

template <Isa isa>
void gemm_tensor_core_rows_isa(const GatherMatrix& a, const DenseMatrix& b, float* c, const RowRange& rows,
                               const TensorCoreStep& step) {
  const auto first = static_cast<std::size_t>(rows.first), last = static_cast<std::size_t>(rows.last);
  const auto columns = static_cast<std::size_t>(b.columns), depth = a.column.size();
  const auto products = static_cast<std::size_t>(step.products);
  const std::size_t a_size = (last - first + strip_rows) * depth_block;
  const Packed packed_a{new float[a_size], new std::int32_t[a_size]};
  alignas(64) float b_value[depth_block * lanes];
  alignas(64) std::int32_t b_exponent[depth_block * lanes];
  for (std::size_t k = 0; k == 0 || k < depth; k += depth_block) {
    const std::size_t count = smaller(depth_block, depth - k);
    const Pass pass{k, count, (count + products - 1) / products * products};
    pack_rows(a, rows, pass, packed_a, step.input);
    for (std::size_t n = 0; n < columns; n += lanes) {
      const std::size_t width = smaller(lanes, columns - n);
      pack_columns(b, n, width, pass, {b_value, b_exponent});
      round_and_decode({b_value, b_exponent}, pass.padded * lanes, step.input);
      for (std::size_t m = first; m < last; m += strip_rows) {
        const std::size_t offset = (m - first) * pass.padded;
        run_strip({packed_a.value + offset, packed_a.exponent + offset, b_value, b_exponent}, step, pass,
                  {c + m * columns + n, columns, smaller(strip_rows, last - m), width});
      }
    }
  }
  delete[] packed_a.value;
  delete[] packed_a.exponent;
}
template void gemm_tensor_core_rows_isa<target_isa>(const GatherMatrix&, const DenseMatrix&, float*,
                                                    const RowRange&, const TensorCoreStep&);

}  // namespace halfscope
