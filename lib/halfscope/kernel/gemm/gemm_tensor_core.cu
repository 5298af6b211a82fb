// Matrix products as a tensor core adds them up, in integers: operands are decoded once per block.
#include <halfscope/arithmetic/detail/fused_step.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/gemm/detail/gemm_tensor_core.cuh>

namespace halfscope::cuda {
namespace {

/// A number of at most 12 significand bits in a word: the signed significand above, the exponent below.
struct PackedNumber {
  static constexpr int bias = 1024;
  /// A zero's exponent is below what a zero accumulator counts as, whatever number it is multiplied by, so it
  /// never is the largest; that of an infinity or NaN is beyond every product's.
  static constexpr int zero = -400, special = 1000, least_special_sum = 500;
  std::int32_t word;

  [[nodiscard]] HALFSCOPE_HD int significand() const { return word >> 16; }
  [[nodiscard]] HALFSCOPE_HD int biased_exponent() const { return word & 0xFFFF; }
};

/// Rounds to the operands' format and packs.
struct Pack {
  RoundingGrid grid;
  FloatFormat format;
  HALFSCOPE_HD PackedNumber operator()(float x) const {
    const float rounded = round_on_grid<Rounding::nearest_even>(x, grid);
    if (magnitude_bits(rounded) >= infinity_bits) return {PackedNumber::special + PackedNumber::bias};
    const detail::Decoded number = detail::decode(rounded, format);
    const auto significand = static_cast<int>(number.significand);
    const int exponent = significand == 0 ? PackedNumber::zero : number.exponent;
    return {significand * 65536 + (exponent + PackedNumber::bias)};
  }
};

/// magnitude / 2^distance, cut off.
HALFSCOPE_HD int moved_down(std::uint32_t magnitude, int distance) {
#if defined(__CUDA_ARCH__)
  return static_cast<int>(__funnelshift_rc(magnitude, 0u, static_cast<unsigned>(distance)));
#else
  return static_cast<int>(magnitude >> (distance < 31 ? distance : 31));
#endif
}

/// The operands of the step from term k on for element (m, n), rounded.
struct StepOperands {
  Matrices matrices;
  RoundingGrid grid;
  std::int64_t m, n, k;
  [[nodiscard]] HALFSCOPE_HD float a(int i) const {
    return round_on_grid<Rounding::nearest_even>(matrices.a_at(m, k + i), grid);
  }
  [[nodiscard]] HALFSCOPE_HD float b(int i) const {
    return round_on_grid<Rounding::nearest_even>(matrices.b_at(k + i, n), grid);
  }
};

template <typename Tile, int products>
struct TensorCoreGemm {
  static constexpr int threads = Tile::threads;
  using Shared = typename Tile::template Operands<PackedNumber>;
  struct State {
    float sum[Tile::per][Tile::per] = {};
  };
  Matrices matrices;
  TensorCoreStep step;
  RoundingGrid grid;

  HALFSCOPE_HD void fill(const BlockThread& here, std::int64_t pass, Shared& shared) const {
    Tile::fill(matrices, here, pass, shared, Pack{grid, step.input});
  }
  HALFSCOPE_HD void use(const BlockThread& here, std::int64_t pass, const Shared& shared,
                        State& state) const {
    for (int t = 0; t < Tile::depth && pass * Tile::depth + t < matrices.depth; t += products) {
      Tile::for_elements(matrices, here, [&](int i, int j, std::int64_t m, std::int64_t n) {
        float& sum = state.sum[i][j];
        const int row = here.thread / Tile::side + Tile::side * i;
        const int column = here.thread % Tile::side + Tile::side * j;
        if (add_step(shared, t, row, column, sum)) return;
        const StepOperands operands{matrices, grid, m, n, pass * Tile::depth + t};
        const std::int64_t left = matrices.depth - operands.k;
        sum = detail::fused_step<std::size_t{products}>(
            operands, left < products ? static_cast<int>(left) : products, sum, step);
      });
    }
  }
  HALFSCOPE_HD void finish(const BlockThread& here, State& state) const {
    Tile::for_elements(matrices, here, [&](int i, int j, std::int64_t m, std::int64_t n) {
      matrices.c[m * matrices.columns + n] = state.sum[i][j];
    });
  }

 private:
  /// `fused_step` where all numbers are finite, else false; terms beyond the last are zeros.
  HALFSCOPE_HD bool add_step(const Shared& shared, int t, int row, int column, float& sum) const {
    int product[std::size_t{products}], exponent[std::size_t{products}];
    detail::Decoded start = detail::decode(sum, step.output);
    if (start.significand == 0) start.exponent = step.zero_exponent;
    int largest = start.exponent;
    for (int p = 0; p < products; ++p) {
      const PackedNumber a = shared.a[t + p][row], b = shared.b[t + p][column];
      product[p] = a.significand() * b.significand();
      exponent[p] = a.biased_exponent() + b.biased_exponent() - 2 * PackedNumber::bias;
      largest = detail::larger(largest, exponent[p]);
    }
    const bool special = largest >= PackedNumber::least_special_sum || magnitude_bits(sum) >= infinity_bits;
    if (special) return false;
    const int up = step.fraction_bits - 2 * step.input.mantissa_bits;
    std::int64_t total = detail::align(start.significand, step.fraction_bits - step.output.mantissa_bits,
                                       largest - start.exponent);
    for (int p = 0; p < products; ++p) {
      const bool negative = product[p] < 0;
      const auto magnitude = static_cast<std::uint32_t>(negative ? -product[p] : product[p]) << up;
      const int aligned = moved_down(magnitude, largest - exponent[p]);
      total += negative ? -aligned : aligned;
    }
    sum = detail::round_sum(total, largest - step.fraction_bits, step);
    return true;
  }
};

template <int products>
void launch(const Matrices& matrices, const TensorCoreStep& step) {
  with_tile<2>(matrices, [&]<typename Tile>(Tile) {
    for_each_block(
        Tile::blocks(matrices.rows, matrices.columns), (matrices.depth + Tile::depth - 1) / Tile::depth,
        TensorCoreGemm<Tile, products>{matrices, step, rounding_grid({.format = step.input})}, "gemm");
  });
}

}  // namespace

void tensor_core_gemm(const Matrices& matrices, const AccumulateModel& model) {
  const TensorCoreStep& step = product_step(model);
  switch (step.products) {
    case 4:
      return launch<4>(matrices, step);
    case 8:
      return launch<8>(matrices, step);
    case 16:
      return launch<16>(matrices, step);
    default:
      return launch<32>(matrices, step);
  }
}

}  // namespace halfscope::cuda
