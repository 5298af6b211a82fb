// Models of AMD's matrix cores: dot products in the steps of CDNA's MFMA instructions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <halfscope/core/names.hpp>
#include <halfscope/format/formats.hpp>

namespace halfscope {

/// CDNA2 has two instructions for BF16; `cdna2_1k` is the one whose names end in _1k.
enum class MatrixCoreGeneration : std::uint8_t { cdna1, cdna2, cdna2_1k, cdna3 };
template <>
inline constexpr std::array<std::string_view, 4> enum_names<MatrixCoreGeneration>{"cdna1", "cdna2",
                                                                                  "cdna2_1k", "cdna3"};

/// How a step adds its products and the accumulator c.
enum class MatrixCoreSum : std::uint8_t {
  exact,    ///< exactly, then one rounding to nearest; subnormal numbers are kept
  rounded,  ///< by FP32 products and sums to nearest, in pairs, c last; subnormal numbers are zeros
            ///< throughout
  /// Products are cut off toward zero 24 bits below their largest exponent, and added. The sum, 32 bits below
  /// the larger of that and c's exponent, and c, 24 bits below, are rounded down and added; the result keeps
  /// 31 bits below its leading one, rounded down, and is rounded to nearest.
  cut,
  /// As `cut`, with the products of even and of odd k added up apart: their sums are rounded down and added.
  /// A c more than 25 binades below the products is dropped.
  cut_by_parity,
};

/// One step of a matrix core, whose sums are FP32.
struct MatrixCoreStep {
  MatrixCoreGeneration generation;
  FloatFormat input;
  int products;  ///< per step, at most
  MatrixCoreSum sum;
};

namespace detail {
using enum MatrixCoreGeneration;
using enum MatrixCoreSum;
}  // namespace detail

/// All as MMA-Sim 2.1.1 describes them, and an independent model in exact rationals: no GPU's products have
/// been compared. TF32 is AMD's xf32.
inline constexpr std::array matrix_core_table{
    MatrixCoreStep{detail::cdna1, fp16, 4, detail::exact},
    MatrixCoreStep{detail::cdna1, bf16, 2, detail::exact},
    MatrixCoreStep{detail::cdna2, fp16, 4, detail::rounded},
    MatrixCoreStep{detail::cdna2, bf16, 2, detail::rounded},
    MatrixCoreStep{detail::cdna2_1k, bf16, 4, detail::rounded},
    MatrixCoreStep{detail::cdna3, fp16, 8, detail::cut},
    MatrixCoreStep{detail::cdna3, bf16, 8, detail::cut},
    MatrixCoreStep{detail::cdna3, tf32, 4, detail::cut},
    MatrixCoreStep{detail::cdna3, fp8_e4m3fnuz, 16, detail::cut_by_parity},
    MatrixCoreStep{detail::cdna3, fp8_e5m2fnuz, 16, detail::cut_by_parity},
};

/// The step of a generation for operands in `input`; throws InvalidArgument with the formats that it takes.
[[nodiscard]] const MatrixCoreStep& matrix_core_step(MatrixCoreGeneration generation,
                                                     const FloatFormat& input);

/// c + the sum of the products a[k] b[k] in steps of ascending terms, of which the last may be shorter. `a`
/// and `b` hold numbers of `step.input` (of tf32 the low 13 bits are ignored).
/// Overflow goes to infinity; infinities and NaNs are IEEE 754's, and every NaN is 0x7FC00000. A product of
/// 2^128 or more is infinite on CDNA3. Throws InvalidArgument where `a` and `b` differ in size.
[[nodiscard]] float dot(std::span<const float> a, std::span<const float> b, float c,
                        const MatrixCoreStep& step);

}  // namespace halfscope
