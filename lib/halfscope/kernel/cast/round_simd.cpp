// The loops of array rounding, compiled once per instruction set.
#include <halfscope/kernel/cast/detail/round_simd.hpp>

#include <halfscope/format/formats.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/detail/round_lanes.hpp>
#include <halfscope/kernel/cast/detail/round_stochastic.hpp>
#include <halfscope/kernel/detail/vector.hpp>

// Nothing here may be emitted out of line under a name that other translation units share: everything is in
// an unnamed namespace or always inlined.
namespace halfscope {
namespace {

/// Any rounding but stochastic: the scalar reference, vectorised.
template <Rounding rounding>
void round_generic(const float* in, float* out, std::size_t count, const RoundingGrid& shared_grid) {
  const RoundingGrid grid = shared_grid;  // a copy that `out` cannot alias
  if (grid.unsigned_zero == 0) {
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) out[i] = round_on_grid<rounding, Zeros::both>(in[i], grid);
    return;
  }
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) out[i] = round_on_grid<rounding>(in[i], grid);
}

void canonicalise_nans(const float* in, float* out, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = to_bits(in[i]);
    out[i] = from_bits((bits & ~sign_bit) > infinity_bits ? quiet_nan_bits : bits);
  }
}

HALFSCOPE_HD FloatVec with_nans_canonical(FloatVec number_or_nan, Ints bits) {
  return as_floats(number_or_nan == number_or_nan ? bits : all_lanes(quiet_nan_bits));
}

/// Nearest-even for formats with FP32's exponents: the grid is the same in every binade, so integers will do.
void round_wide_exponent(const float* in, float* out, std::size_t count, const RoundingGrid& grid) {
  const std::uint32_t mask = (1u << grid.dropped_bits) - 1u;
  const Ints kept = all_lanes(~mask), odd = all_lanes(mask & 1u);
  const Words below_half = as_words(all_lanes(mask >> 1));
  const Ints max_finite = all_lanes(grid.max_finite), beyond = all_lanes(grid.beyond);
  const Ints flush_below = all_lanes(grid.flush_below), sign = all_lanes(sign_bit);
  const auto shift = static_cast<int>(grid.dropped_bits);
  map_vectors(
      in, out, count, [=](FloatVec x) __attribute__((always_inline)) {
        const Ints magnitude = as_ints(x) & ~sign;
        Ints result = as_ints(as_words(magnitude) + below_half + as_words((magnitude >> shift) & odd)) & kept;
        result = result < flush_below ? Ints{} : result;
        result = result > max_finite ? beyond : result;
        return with_nans_canonical(x, result | (as_ints(x) & sign));
      });
}

/// Nearest-even for formats with a narrower exponent than FP32's and at most 21 mantissa bits: adding 1.5 *
/// 2^k makes the hardware round at bit k - 23; the grid of the subnormals follows from a lower bound on k.
template <Subnormals subnormals>
void round_by_magic_add(const float* in, float* out, std::size_t count, const RoundingGrid& grid) {
  const Ints lowest = all_lanes(grid.min_normal_field << 23), infinity = all_lanes(infinity_bits);
  const Ints highest = all_lanes((grid.max_finite & infinity_bits) + (1u << 23));
  const Ints to_magic = all_lanes((grid.dropped_bits << 23) | (1u << 22)), sign = all_lanes(sign_bit);
  const FloatVec max_finite = all_lanes(from_bits(grid.max_finite)),
                 beyond = all_lanes(from_bits(grid.beyond));
  const FloatVec flush_below = all_lanes(from_bits(grid.flush_below));
  map_vectors(
      in, out, count, [=](FloatVec x) __attribute__((always_inline)) {
        Ints binade = as_ints(x) & infinity;
        binade = binade > lowest ? binade : lowest;
        binade = binade < highest ? binade : highest;  // keeps the sum finite; overflow is tested below
        const FloatVec magic = as_floats(binade + to_magic);
        FloatVec result = (as_floats(as_ints(x) & ~sign) + magic) - magic;
        if constexpr (subnormals == Subnormals::flush_to_zero)
          result = result < flush_below ? FloatVec{} : result;
        result = result > max_finite ? beyond : result;
        return with_nans_canonical(result, as_ints(result) | (as_ints(x) & sign));
      });
}

bool is_fp16(const Quantizer& q) {
  return q.format == fp16 && q.overflow == Overflow::infinity;
}

/// FP16 through the hardware's own conversions.
template <int mode>
void round_by_conversion(const float* in, float* out, std::size_t count) {
  map_vectors(
      in, out, count, [](FloatVec x) __attribute__((always_inline)) {
        return with_nans_canonical(x, as_ints(convert_to_half_and_back<mode>(x)));
      });
}

/// Which of the fast loops can do `q`; the reference loop does the rest.
void round_nearest_even(const float* in, float* out, std::size_t count, const Quantizer& q) {
  const FloatFormat& f = q.format;
  const RoundingGrid grid = rounding_grid(q);
  if (has_conversion<FloatVec> && is_fp16(q)) return round_by_conversion<0>(in, out, count);
  if (f.exponent_bits == 8) return round_wide_exponent(in, out, count, grid);
  if (f.mantissa_bits > 21 || !f.has_signed_zero())
    return round_generic<Rounding::nearest_even>(in, out, count, grid);
  if (f.subnormals == Subnormals::gradual)
    return round_by_magic_add<Subnormals::gradual>(in, out, count, grid);
  round_by_magic_add<Subnormals::flush_to_zero>(in, out, count, grid);
}

}  // namespace

template <>
void round_isa<target_isa>(const float* in, float* out, std::size_t count, const Quantizer& q,
                           RandomStream stream) {
  if (q.is_identity()) return canonicalise_nans(in, out, count);
  const RoundingGrid grid = rounding_grid(q);
  switch (q.rounding) {
    case Rounding::nearest_even:
      return round_nearest_even(in, out, count, q);
    case Rounding::nearest_away:
      return round_generic<Rounding::nearest_away>(in, out, count, grid);
    case Rounding::toward_zero:
      if (has_conversion<FloatVec> && is_fp16(q)) return round_by_conversion<3>(in, out, count);
      return round_generic<Rounding::toward_zero>(in, out, count, grid);
    case Rounding::up:
      if (has_conversion<FloatVec> && is_fp16(q)) return round_by_conversion<2>(in, out, count);
      return round_generic<Rounding::up>(in, out, count, grid);
    case Rounding::down:
      if (has_conversion<FloatVec> && is_fp16(q)) return round_by_conversion<1>(in, out, count);
      return round_generic<Rounding::down>(in, out, count, grid);
    case Rounding::to_odd:
      return round_generic<Rounding::to_odd>(in, out, count, grid);
    case Rounding::stochastic:
      return round_stochastic_isa<target_isa>(in, out, count, q, {stream});
  }
}

}  // namespace halfscope
