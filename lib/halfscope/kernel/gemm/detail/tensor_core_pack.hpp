// Operands of a tensor-core product, rounded and decoded; only for *_simd.cpp, which are compiled once per
// instruction set.
#pragma once

#include <halfscope/kernel/cast/detail/round_lanes.hpp>
#include <halfscope/kernel/detail/vector.hpp>
#include <halfscope/kernel/gemm/detail/right_panel.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

/// Terms per pass, a multiple of those whose exponents share words: b's numbers stay in the first-level
/// cache.
constexpr std::size_t depth_block = 256;
constexpr std::size_t strip_rows = 4;
/// From one row of a to the next; a power of two would put all rows into the same few sets of the cache.
constexpr std::size_t value_stride = depth_block + 16, word_stride = depth_block / 2 + 16;

HALFSCOPE_HD std::size_t rounded_up(std::size_t count, std::size_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// How exponents are packed: negated, several steps' to a word. Word w has in its part q that of term w of
/// step q. Two words, of a and b, add up to `bias + log2_scale` + the step's fraction bits - the products'
/// exponents: the least of a step's sums tells by which power of two its numbers become integers.
///
/// For FP16, whose products lie between 2^-48 and 2^32. A zero's sum with any other is beyond every
/// product's, and below 256. Numbers are multiplied by 2^-60 before they are scaled to integers.
struct Fp16Parts {
  using Part = std::uint8_t;
  static constexpr std::int32_t bias = 0, log2_scale = 60;
  static constexpr float scale = 0x1p-60f;
  static constexpr std::int32_t zero = 90, special = 0;
  HALFSCOPE_HD static FloatVec rounded(FloatVec x, const RoundingGrid&) { return round_to_fp16(x); }
};
/// As FP16, which has all numbers of FP8; subnormal numbers are others.
struct Fp8Parts : Fp16Parts {
  HALFSCOPE_HD static FloatVec rounded(FloatVec x, const RoundingGrid& grid) { return round_lanes(x, grid); }
};
/// For any format. An infinity's or NaN's sum is below that of every product that is in range.
struct WideParts {
  using Part = std::uint16_t;
  static constexpr std::int32_t bias = 24000, log2_scale = 0;
  static constexpr float scale = 1;
  static constexpr std::int32_t zero = 13000, special = 0;
  HALFSCOPE_HD static FloatVec rounded(FloatVec x, const RoundingGrid& grid) { return round_lanes(x, grid); }
};
template <typename Parts>
constexpr std::size_t steps_per_word = sizeof(std::uint32_t) / sizeof(typename Parts::Part);

/// A word whose parts are all those of zeros.
template <typename Parts>
constexpr std::uint32_t zeros_of() {
  std::uint32_t word = 0;
  for (std::size_t q = 0; q < steps_per_word<Parts>; ++q)
    word = (word << (32 / steps_per_word<Parts>)) | static_cast<std::uint32_t>(Parts::zero);
  return word;
}

/// The number from which the exponent field of a float of a is subtracted: half of the sums' constant part.
template <typename Parts>
std::int32_t minuend_of_a(const TensorCoreStep& step) {
  return 127 + (Parts::bias + Parts::log2_scale + step.fraction_bits) / 2;
}
template <typename Parts>
std::int32_t minuend_of_b(const TensorCoreStep& step) {
  return 127 + (Parts::bias + Parts::log2_scale + step.fraction_bits + 1) / 2;
}

/// A number's part. Subnormal numbers have the smallest exponent of their format.
template <typename Parts>
HALFSCOPE_HD Ints part_of(FloatVec x, std::int32_t minuend, std::int32_t min_field) {
  const Ints magnitude = magnitude_of(x);
  const Ints finite = minuend - larger(magnitude >> 23, Ints{} + min_field);
  const Ints number = magnitude == 0 ? Ints{} + Parts::zero : finite;
  return magnitude >= static_cast<std::int32_t>(infinity_bits) ? Ints{} + Parts::special : number;
}

/// The terms [first, first + count) of every sum.
struct DepthBlock {
  std::size_t first, count;
};

/// One operand's numbers for a pass, and their packed exponents.
struct Packed {
  float* value;
  std::uint32_t* words;
};

/// Which vectors of a pass's columns of a lie side by side, so that they are copied whole.
struct Contiguous {
  bool vector[depth_block / lanes];
};

[[maybe_unused]] Contiguous find_contiguous(const std::int32_t* column, std::size_t count) {
  Contiguous contiguous{};
  for (std::size_t k = 0; k + lanes <= count; k += lanes) {
    bool all = true;
    for (std::size_t i = 1; i < lanes; ++i) all &= column[k + i] - column[k] == static_cast<std::int32_t>(i);
    contiguous.vector[k / lanes] = all;
  }
  return contiguous;
}

/// to[k] = row[column[k]], then zeros up to a whole vector.
HALFSCOPE_HD void gather(const float* row, const std::int32_t* column, std::size_t count,
                         const Contiguous& contiguous, float* to) {
  for (std::size_t k = 0; k < count; k += lanes) {
    if (contiguous.vector[k / lanes]) {
      store(to + k, load(row + column[k]));
      continue;
    }
    const std::size_t here = smaller(lanes, count - k);
    if (here < lanes) store(to + k, FloatVec{});
    for (std::size_t i = 0; i < here; ++i) to[k + i] = row[column[k + i]];
  }
}

/// The same for a strip of rows that lie side by side, as a transposed matrix has them: to[i * value_stride +
/// k] = first_row[i + column[k]], in blocks of four terms.
HALFSCOPE_HD void gather_strip(const float* first_row, const std::int32_t* column, std::size_t count,
                               float* to) {
  static_assert(strip_rows == 4);
  const auto all_rows = [&](std::size_t k) {
    Quad x{};
    if (k < count) std::memcpy(&x, first_row + column[k], sizeof x);
    return x;
  };
  const std::size_t padded = rounded_up(count, lanes);
  for (std::size_t k = 0; k < padded; k += 4) {
    const Quad x0 = all_rows(k), x1 = all_rows(k + 1), x2 = all_rows(k + 2), x3 = all_rows(k + 3);
    const Quads rows = transposed({x0, x1, x2, x3});
    for (std::size_t i = 0; i < strip_rows; ++i)
      std::memcpy(to + i * value_stride + k, &rows.row[i], sizeof rows.row[i]);
  }
}

/// How one operand is packed.
struct Packing {
  RoundingGrid grid;
  std::int32_t minuend, min_field;
};
HALFSCOPE_HD Packing packing_of(const TensorCoreStep& step, std::int32_t minuend) {
  return {rounding_grid({.format = step.input}), minuend, step.input.min_exponent() + 127};
}

/// Rounds and scales a row's values and packs their exponents; whether any is infinite or NaN.
template <typename Parts, std::size_t products>
bool pack_row(const Packed& row, std::size_t count, const Packing& packing) {
  constexpr std::size_t steps = steps_per_word<Parts>, bits = 32 / steps;
  const std::size_t padded = rounded_up(count, lanes);
  const std::size_t end = count <= products ? products : rounded_up(count, steps * products);
  alignas(vector_bytes) std::uint32_t parts[depth_block];
  Ints largest{};
  for (std::size_t k = 0; k < padded; k += lanes) {
    const FloatVec x = Parts::rounded(load(row.value + k), packing.grid);
    const Ints part = part_of<Parts>(x, packing.minuend, packing.min_field);
    std::memcpy(parts + k, &part, sizeof part);
    largest = larger(largest, magnitude_of(x));
    store(row.value + k, x * Parts::scale);
  }
  for (std::size_t k = padded; k < end; k += lanes) {
    const Ints part = Ints{} + Parts::zero;
    std::memcpy(parts + k, &part, sizeof part);
  }
  if (count <= products) {  // one step: the other parts of its words are zeros'
    const std::uint32_t others = zeros_of<Parts>() & ~((std::uint32_t{2} << (bits - 1)) - 1);
#pragma omp simd
    for (std::size_t w = 0; w < products; ++w) row.words[w] = parts[w] | others;
    return any_special(largest);
  }
  for (std::size_t first = 0, to = 0; first < end; first += steps * products, to += products) {
#pragma omp simd
    for (std::size_t w = 0; w < products; ++w) {
      std::uint32_t word = 0;
      for (std::size_t q = 0; q < steps; ++q) word |= parts[first + q * products + w] << (q * bits);
      row.words[to + w] = word;
    }
  }
  return any_special(largest);
}

/// Packs a vector's columns of b, unscaled.
template <typename Parts, std::size_t products>
bool pack_columns(const Packed& columns, std::size_t count, const Packing& packing) {
  constexpr std::size_t steps = steps_per_word<Parts>, bits = 32 / steps;
  Ints largest{};
  for (std::size_t first = 0, to = 0; first < count; first += steps * products) {
    for (std::size_t w = 0; w < products; ++w, to += lanes) {
      Words word{};
      for (std::size_t q = 0; q < steps; ++q) {
        const std::size_t k = first + q * products + w;
        FloatVec x{};
        if (k < count) {
          x = Parts::rounded(load(columns.value + k * lanes), packing.grid);
          store(columns.value + k * lanes, x);
        }
        word |= as_words(part_of<Parts>(x, packing.minuend, packing.min_field)) << (q * bits);
        largest = larger(largest, magnitude_of(x));
      }
      std::memcpy(columns.words + to, &word, sizeof word);
    }
  }
  return any_special(largest);
}

}  // namespace
}  // namespace halfscope
