// Sums of groups of FP4 products at scales of their own, in double precision; only for *_simd.cpp, which are
// compiled once per instruction set.
#pragma once

#include <halfscope/kernel/gemm/detail/block_panel.hpp>
#include <halfscope/kernel/gemm/detail/truncated_doubles.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

/// Groups of 16 products of FP4, which are exact in FP32, as are they times their scales. A step's sum is
/// exact in double precision.
class GroupedSums {
 public:
  static constexpr PairLimits limits{-118, 90, 40};

  GroupedSums(const BlockRows& a, const BlockRows& /*b*/, const BlockScaledUnit& unit)
      : a_(a), unit_(unit), groups_per_block_(static_cast<std::size_t>(unit.block) / group) {}

  void pack(const Panel& /*panel*/) const {}

  [[gnu::noinline]] void add(const StripRows& rows, const Panel& panel, StripSums& sums) const {
    [[maybe_unused]] const RoundsTowardZero mode;
    Strip c{};
    for (std::size_t k = 0; k < depth_of(a_); k += step) add_step(rows, panel, k, c);
    for (std::size_t i = 0; i < strip_rows; ++i) sums.c[i] = c[i];
  }

 private:
  static constexpr std::size_t group = 16, step = 64, groups = step / group;

  /// The terms of a step's groups, and the largest exponent of those that have a product.
  struct Terms {
    FloatVec terms[groups][strip_rows];
    Ints largest[strip_rows];
  };

  HALFSCOPE_HD void add_groups(const StripRows& rows, const Panel& panel, std::size_t k, std::size_t first,
                               Terms& to) const {
    const std::size_t depth = depth_of(a_), blocks = blocks_of(a_);
    FloatVec sum[2][strip_rows] = {};
    const float* a[strip_rows];
    for (std::size_t i = 0; i < strip_rows; ++i) a[i] = a_.values.get() + rows.row(i) * depth + k;
    const float* const b = panel.values + k * lanes;
    for (std::size_t at = first * group; at < (first + 1) * group; ++at) {
      const FloatVec x = load(b + at * lanes), y = load(b + (at + group) * lanes);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < strip_rows; ++i) {
        sum[0][i] = add_exact(all_lanes(a[i][at]), x, sum[0][i]);
        sum[1][i] = add_exact(all_lanes(a[i][at + group]), y, sum[1][i]);
      }
    }
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t g = k / group + first + half, block = g / groups_per_block_;
      const FloatVec scale = load(panel.scales + block * lanes);
      Ints exponent, bits;
      std::memcpy(&exponent, panel.exponents + block * lanes, sizeof exponent);
      std::memcpy(&bits, panel.nonzero + g * lanes, sizeof bits);
      for (std::size_t i = 0; i < strip_rows; ++i) {
        const std::size_t row = rows.row(i);
        to.terms[first + half][i] =
            sum[half][i] * (all_lanes(a_.scales.data()[row * blocks + block]) * scale);
        const Ints both = bits & all_lanes(a_.nonzero.data()[row * (depth / group) + g]);
        const Ints found = exponent + a_.exponents.data()[row * blocks + block];
        to.largest[i] = larger(to.largest[i], both == 0 ? Ints{} + unit_.zero_exponent : found);
      }
    }
  }

  HALFSCOPE_HD static FloatVec add_exact(FloatVec a, FloatVec b, FloatVec c) {
#if defined(__FMA__)
    return fused(a, b, c);
#else
    return c + a * b;
#endif
  }

  HALFSCOPE_HD void add_step(const StripRows& rows, const Panel& panel, std::size_t k, Strip& c) const {
    Terms x;
    for (std::size_t i = 0; i < strip_rows; ++i) x.largest[i] = (magnitude_of(c[i]) >> 23) - 127;
    for (std::size_t g = 0; g < groups; g += 2) add_groups(rows, panel, k, g, x);
    for (std::size_t i = 0; i < strip_rows; ++i) {
      const Ints up = unit_.fraction_bits - x.largest[i];
      const auto sum = [&]<std::size_t part>() {
        const Doubles scale = half_of_powers<part>(up);
        Doubles all = truncated(half_in_double<part>(c[i]) * scale);
        for (std::size_t g = 0; g < groups; ++g)
          all += truncated(half_in_double<part>(x.terms[g][i]) * scale);
        return all * half_of_powers<part>(-up);
      };
      c[i] = truncate_to_floats(sum.template operator()<0>(), sum.template operator()<1>());
    }
  }

  const BlockRows& a_;
  const BlockScaledUnit& unit_;
  std::size_t groups_per_block_;
};

}  // namespace
}  // namespace halfscope
