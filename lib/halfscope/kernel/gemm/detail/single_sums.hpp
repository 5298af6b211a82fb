// Sums of products that share scales by steps, in integers; only for *_simd.cpp, which are compiled once per
// instruction set.
#pragma once

#include <halfscope/kernel/detail/scratch.hpp>
#include <halfscope/kernel/gemm/detail/block_panel.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

/// Steps of 32 products at one scale: those of FP8, with the sum brought to the scale of each step. Sums have
/// the factor 2^-60 of Fp8Parts too.
class SingleSums {
 public:
  static constexpr PairLimits limits{-60, 33, 255};

  SingleSums(const BlockRows& a, const BlockRows& b, const BlockScaledUnit& unit)
      : a_(a),
        step_(step_of(a, unit)),
        packing_(packing_of(step_of(b, unit), minuend_of_b<Fp8Parts>(step_))),
        chunks_((depth_of(a) + depth_block - 1) / depth_block),
        strips_((static_cast<std::size_t>(a.rows) + strip_rows - 1) / strip_rows),
        values_(strips_ * chunks_ * strip_rows * value_stride),
        words_(strips_ * chunks_ * strip_rows * word_stride) {
    const Packing packing = packing_of(step_, minuend_of_a<Fp8Parts>(step_));
    for (std::size_t row = 0; row < strips_ * strip_rows; ++row) {
      const std::size_t from = smaller(row, static_cast<std::size_t>(a.rows) - 1);
      for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
        const std::size_t k = chunk * depth_block, count = smaller(depth_block, depth_of(a) - k);
        const std::size_t place = (row / strip_rows * chunks_ + chunk) * strip_rows + row % strip_rows;
        const Packed to{values_.data() + place * value_stride, words_.data() + place * word_stride};
        std::memcpy(to.value, a.values.get() + from * depth_of(a) + k, count * sizeof(float));
        (void)pack_row<Fp8Parts, products>(to, count, packing);
      }
    }
  }

  void pack(const Panel& panel) const {
    for (std::size_t k = 0; k < depth_of(a_); k += depth_block)
      (void)pack_columns<Fp8Parts, products>({panel.values + k * lanes, panel.words + k / 4 * lanes},
                                             smaller(depth_block, depth_of(a_) - k), packing_);
  }

  [[gnu::noinline]] void add(const StripRows& rows, const Panel& panel, StripSums& sums) const {
    [[maybe_unused]] const RoundsTowardZero mode;
    Strip c{};
    Ints exponent[strip_rows];
    for (std::size_t i = 0; i < strip_rows; ++i) exponent[i] = exponents_of(rows, panel, i, 0);
    for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
      const std::size_t place = (rows.first / strip_rows * chunks_ + chunk) * strip_rows,
                        k = chunk * depth_block;
      const std::size_t end = smaller(depth_block, depth_of(a_) - k);
      for (std::size_t at = 0; at < end; at += steps * products) {
        Ints scales[steps][strip_rows];
        find_scales(words_.data() + place * word_stride + at / 4, panel.words + (k + at) / 4 * lanes, scales);
        for (std::size_t q = 0; q < steps && at + q * products < end; ++q) {
          const std::size_t term = at + q * products;
          for (std::size_t i = 0; i < strip_rows; ++i) {
            const Ints next = exponents_of(rows, panel, i, (k + term) / products);
            bring_to_scale(exponent[i] - next, c[i], sums.beyond[i]);
            exponent[i] = next;
          }
          const StepOperands operands{values_.data() + place * value_stride + term,
                                      panel.values + (k + term) * lanes, products};
          add_fp8_step<products>(operands, scales[q], step_, c);
        }
      }
    }
    for (std::size_t i = 0; i < strip_rows; ++i)
      sums.c[i] = c[i] * as_floats((exponent[i] + (127 + Fp8Parts::log2_scale)) << 23);
  }

 private:
  static constexpr std::size_t products = 32, steps = steps_per_word<Fp8Parts>;

  static TensorCoreStep step_of(const BlockRows& x, const BlockScaledUnit& unit) {
    return {x.element,          fp32, unit.products,        unit.fraction_bits,
            unit.zero_exponent, fp32, Rounding::toward_zero};
  }

  HALFSCOPE_HD Ints exponents_of(const StripRows& rows, const Panel& panel, std::size_t i,
                                 std::size_t block) const {
    Ints exponent;
    std::memcpy(&exponent, panel.exponents + block * lanes, sizeof exponent);
    return exponent + a_.exponents.data()[rows.row(i) * blocks_of(a_) + block];
  }

  /// Sums far from a step's products are beyond what Fp8Scales holds.
  HALFSCOPE_HD static void bring_to_scale(Ints exponent, FloatVec& c, Ints& beyond) {
    constexpr std::int32_t least = 26, most = 127 + 25;
    const Ints before = magnitude_of(c);
    c = c * as_floats((exponent + 127) << 23);
    const Ints field = magnitude_of(c) >> 23;
    beyond |= ((field - least) | (most - field)) & -before;
  }

  HALFSCOPE_HD static void find_scales(const std::uint32_t* a, const std::uint32_t* b,
                                       Ints (&scales)[steps][strip_rows]) {
    const LeastSums<Fp8Scales> least(a, b, products);
    for (std::size_t i = 0; i < strip_rows; ++i) {
      scales[0][i] = least.scale<0>(i);
      scales[1][i] = least.scale<1>(i);
      scales[2][i] = least.scale<2>(i);
      scales[3][i] = least.scale<3>(i);
    }
  }

  const BlockRows& a_;
  TensorCoreStep step_;
  Packing packing_;
  std::size_t chunks_, strips_;
  Scratch<float> values_;
  Scratch<std::uint32_t> words_;
};

}  // namespace
}  // namespace halfscope
