// Rounding of a vector between two operations; only for *_simd.cpp, which are compiled once per instruction
// set.
#pragma once

#include <cstddef>
#include <cstring>

#include <halfscope/format/formats.hpp>
#include <halfscope/format/round.hpp>

#if defined(__F16C__)
#include <immintrin.h>
#endif

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

/// The ways to round to the nearest even number of a format.
enum class RoundWay : std::uint8_t {
  by_adding,    ///< fewer exponents than FP32: adding 2^k leaves no place for what is rounded off
  by_carrying,  ///< FP32's exponents, subnormal numbers included: half a unit is added to the bits
  by_element,   ///< FP32's significand: only flushed, overflowed, or cut off as subnormal numbers are; or a
                ///< format with one zero
};

HALFSCOPE_HD RoundWay round_way(const RoundingGrid& grid) {
  if (grid.dropped_bits == 0 || grid.unsigned_zero != 0) return RoundWay::by_element;
  return grid.min_normal_field == 1 ? RoundWay::by_carrying : RoundWay::by_adding;
}

/// A vector to the nearest even numbers; every NaN becomes the quiet one. `way` is the grid's.
template <RoundWay way, typename V>
HALFSCOPE_HD V round_lanes_by(V v, const RoundingGrid& grid) {
  constexpr std::size_t count = sizeof(V) / sizeof(float);
  if constexpr (way == RoundWay::by_element) {
    float x[count];
    std::memcpy(x, &v, sizeof v);
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) x[i] = round_on_grid<Rounding::nearest_even>(x[i], grid);
    std::memcpy(&v, x, sizeof v);
    return v;
  } else {
    using Bits [[gnu::vector_size(sizeof(V))]] = std::int32_t;
    const auto all = [](std::uint32_t number) { return Bits{} + static_cast<std::int32_t>(number); };
    const Bits bits = reinterpret_cast<Bits>(v), magnitude = bits & 0x7FFFFFFF;
    Bits result;
    if constexpr (way == RoundWay::by_carrying) {
      // Numbers only: the carry of a NaN could reach the sign.
      const std::uint32_t unit = 1u << grid.dropped_bits;
      const Bits number = magnitude < all(infinity_bits) ? magnitude : all(infinity_bits);
      result = number + all(unit / 2 - 1) + ((number >> static_cast<std::int32_t>(grid.dropped_bits)) & 1);
      result = result & all(0u - unit);
      result = magnitude > all(infinity_bits) ? magnitude : result;
    } else {
      const Bits least = all(grid.min_normal_field << 23), most = all(grid.max_finite & infinity_bits);
      Bits binade = magnitude & all(infinity_bits);
      binade = binade > least ? binade : least;
      binade = binade < most ? binade : most;
      const V place = reinterpret_cast<V>(binade + all(grid.dropped_bits << 23));
      result = reinterpret_cast<Bits>((reinterpret_cast<V>(magnitude) + place) - place);
    }
    result = result < all(grid.flush_below) ? Bits{} : result;
    const Bits finite_or_nan = result | (bits ^ magnitude);
    const Bits beyond = all(grid.beyond) | (bits ^ magnitude);
    Bits rounded = result > all(grid.max_finite) ? beyond : finite_or_nan;
    const Bits nan = all(grid.beyond > infinity_bits ? grid.max_finite : infinity_bits);
    const Bits is_nan = (magnitude > all(infinity_bits)) | (result > nan);
    rounded = is_nan ? all(quiet_nan_bits) : rounded;
    return reinterpret_cast<V>(rounded);
  }
}

/// `v` rounded to any grid.
template <typename V>
HALFSCOPE_HD V round_lanes(V v, const RoundingGrid& grid) {
  switch (round_way(grid)) {
    case RoundWay::by_adding:
      return round_lanes_by<RoundWay::by_adding>(v, grid);
    case RoundWay::by_carrying:
      return round_lanes_by<RoundWay::by_carrying>(v, grid);
    case RoundWay::by_element:
      break;
  }
  return round_lanes_by<RoundWay::by_element>(v, grid);
}

/// Whether the processor converts vectors of this size to FP16 and back.
#if defined(__AVX512F__)
template <typename V>
constexpr bool has_conversion = sizeof(V) == 64;
#elif defined(__F16C__)
template <typename V>
constexpr bool has_conversion = sizeof(V) == 32;
#else
template <typename V>
constexpr bool has_conversion = false;
#endif

/// `mode` is an immediate of the conversion: 0 to the nearest, 1 down, 2 up, 3 toward zero. A NaN may keep
/// its payload. Only where has_conversion.
template <int mode, typename V>
HALFSCOPE_HD V convert_to_half_and_back(V v) {
#if defined(__AVX512F__)
  // The masked forms, all lanes on: GCC 12 warns of an uninitialised value in the others (its bug 105593).
  const __mmask16 all = 0xFFFF;
  return _mm512_maskz_cvtph_ps(all, _mm512_maskz_cvtps_ph(all, v, mode | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(_mm256_cvtps_ph(v, mode));
#else
  return v;
#endif
}

/// Nearest even to FP16 and back; a NaN may keep its payload.
template <typename V>
HALFSCOPE_HD V round_to_fp16(V v) {
  if constexpr (has_conversion<V>) {
    return convert_to_half_and_back<0>(v);
  } else {
    return round_lanes(v, rounding_grid({.format = fp16}));
  }
}

struct Identity {
  template <typename V>
  HALFSCOPE_HD V operator()(V v) const {
    return v;
  }
};

struct RoundToFp16 {
  template <typename V>
  HALFSCOPE_HD V operator()(V v) const {
    return round_to_fp16(v);
  }
};

template <RoundWay way>
struct RoundTo {
  RoundingGrid grid;
  template <typename V>
  HALFSCOPE_HD V operator()(V v) const {
    return round_lanes_by<way>(v, grid);
  }
};

/// Calls body(rounding) with the rounding to `format`.
template <typename Body>
void with_rounding_to(const FloatFormat& format, const Body& body) {
  const RoundingGrid grid = rounding_grid({.format = format});
  switch (round_way(grid)) {
    case RoundWay::by_adding:
      return body(RoundTo<RoundWay::by_adding>{grid});
    case RoundWay::by_carrying:
      return body(RoundTo<RoundWay::by_carrying>{grid});
    case RoundWay::by_element:
      break;
  }
  body(RoundTo<RoundWay::by_element>{grid});
}

}  // namespace
}  // namespace halfscope
