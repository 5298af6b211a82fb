// Models of NVIDIA's tensor cores: dot products whose blocks are added up exactly, truncated, then rounded
// once.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

enum class TensorCoreGeneration : std::uint8_t { volta, turing, ampere, ada, hopper, blackwell };
template <>
inline constexpr std::array<std::string_view, 6> enum_names<TensorCoreGeneration>{
    "volta", "turing", "ampere", "ada", "hopper", "blackwell"};

/// One step of a tensor core: `products` products and the accumulator are aligned to the largest of
/// their exponents, each is cut off toward zero `fraction_bits` below it, their sum is exact, and it is
/// rounded once. A product's exponent is the sum of its factors' exponents: products in [2, 4) are not
/// renormalised.
struct TensorCoreStep {
  FloatFormat input;
  FloatFormat output;         ///< the accumulator going in: fp32 or fp16
  int products = 0;           ///< per step, at most; the last step of a dot product may have fewer
  int fraction_bits = 0;      ///< kept below the largest exponent
  int zero_exponent = 0;      ///< exponent that a zero has in the search for the largest
  FloatFormat result = fp32;  ///< format of a step's sum: `output`, or e8m13 in an FP32 register
  Rounding rounding = Rounding::toward_zero;
};

/// The constants of a tensor core that nobody need have built. Its accumulator is FP16 where the result is,
/// else FP32.
struct TensorCoreConstants {
  int products = 0;  ///< per step, 1 to 64; 0: those of a generation
  int fraction_bits = 0;
  int zero_exponent = 0;
  FloatFormat result{};
  Rounding rounding = Rounding::toward_zero;  ///< or nearest_even

  friend constexpr bool operator==(const TensorCoreConstants&, const TensorCoreConstants&) = default;
};

/// A tensor core, by the first architecture that has it or by constants of its own.
struct TensorCore {
  TensorCoreGeneration generation = TensorCoreGeneration::hopper;
  TensorCoreConstants constants{};

  friend constexpr bool operator==(const TensorCore&, const TensorCore&) = default;
  [[nodiscard]] constexpr bool is_free() const { return constants.products != 0; }
  /// The format of its sums in matrix products.
  [[nodiscard]] constexpr FloatFormat output() const {
    return is_free() && constants.result == fp16 ? fp16 : fp32;
  }
};

/// The zero exponent of a core that names none: the one that FP16 products of all generations have.
[[nodiscard]] constexpr int usual_zero_exponent(const FloatFormat& output, int fraction_bits) {
  return output.min_exponent() - (fraction_bits - 18);
}

struct TensorCoreEntry {
  TensorCoreGeneration generation;
  TensorCoreStep step;
};

namespace detail {
inline constexpr FloatFormat e8m13{8, 13};

consteval TensorCoreEntry to_fp32(TensorCoreGeneration g, FloatFormat in, int products, int bits, int zero) {
  return {g, {in, fp32, products, bits, zero, fp32, Rounding::toward_zero}};
}
consteval TensorCoreEntry to_fp16(TensorCoreGeneration g, FloatFormat in, int products, int bits, int zero) {
  return {g, {in, fp16, products, bits, zero, fp16, Rounding::nearest_even}};
}
consteval TensorCoreEntry to_e8m13(TensorCoreGeneration g, FloatFormat in, int products, int bits, int zero) {
  return {g, {in, fp32, products, bits, zero, e8m13, Rounding::toward_zero}};
}

using enum TensorCoreGeneration;
}  // namespace detail

/// One line per generation, input and output. "Captured": equal to all that an H200 made of the sets in
/// tests/golden/captures, by mma.sync and wgmma. "Verified": equal to all 5,000 vectors per format that
/// model_validation of github.com/north-numerical-computing/MATLAB-tensor-core has of the GPUs named.
/// "Documented": as Khattak and Mikaitis (arXiv 2512.07004) or MMA-Sim (arXiv 2511.10909) describe it.
///
/// The zero exponent of FP16 sums is 4 - fraction bits. It decides the sum of c = 0, 2^-25 and 2^-43 (Volta),
/// 2^-45 (Turing to Ada) or 2^-47 (Hopper, Blackwell), which is zero here and 2^-24 with a smaller exponent.
/// Hopper's is captured; the others are those of MMA-Sim 2.1.1 and of Khattak and Mikaitis, since the vectors
/// fit every exponent from -12 to -30.
inline constexpr std::array tensor_core_table{
    detail::to_fp32(detail::volta, fp16, 4, 23, -131),  // verified: V100
    detail::to_fp16(detail::volta, fp16, 4, 23, -19),   // verified: V100; the vectors leave the 23 open

    detail::to_fp32(detail::turing, fp16, 8, 24, -132),  // documented: T4
    detail::to_fp16(detail::turing, fp16, 8, 24, -20),   // documented: T4

    detail::to_fp32(detail::ampere, fp16, 8, 24, -132),  // verified: A100, A2
    detail::to_fp16(detail::ampere, fp16, 8, 24, -20),   // verified: A100, A2
    detail::to_fp32(detail::ampere, bf16, 8, 24, -132),  // verified: A100, A2
    detail::to_fp32(detail::ampere, tf32, 4, 24, -132),  // verified: A100, A2

    detail::to_fp32(detail::ada, fp16, 8, 24, -132),        // verified: L40S, RTX 1000
    detail::to_fp16(detail::ada, fp16, 8, 24, -20),         // verified: L40S, RTX 1000
    detail::to_fp32(detail::ada, bf16, 8, 24, -132),        // verified: L40S, RTX 1000
    detail::to_fp32(detail::ada, tf32, 4, 24, -132),        // verified: L40S, RTX 1000
    detail::to_e8m13(detail::ada, fp8_e4m3, 16, 13, -132),  // verified: L40S, RTX 1000
    detail::to_e8m13(detail::ada, fp8_e5m2, 16, 13, -132),  // verified: L40S, RTX 1000
    detail::to_fp16(detail::ada, fp8_e4m3, 16, 13, -20),    // verified: L40S, RTX 1000
    detail::to_fp16(detail::ada, fp8_e5m2, 16, 13, -20),    // verified: L40S, RTX 1000

    detail::to_fp32(detail::hopper, fp16, 16, 25, -133),       // captured; verified: H100, H200
    detail::to_fp16(detail::hopper, fp16, 16, 25, -21),        // captured; verified: H100, H200
    detail::to_fp32(detail::hopper, bf16, 16, 25, -133),       // captured: mma.sync; verified: H100, H200
    detail::to_fp32(detail::hopper, tf32, 8, 25, -133),        // captured: mma.sync
    detail::to_e8m13(detail::hopper, fp8_e4m3, 32, 13, -133),  // captured: wgmma; mma.sync is another
    detail::to_e8m13(detail::hopper, fp8_e5m2, 32, 13, -133),  // captured: wgmma
    detail::to_fp16(detail::hopper, fp8_e4m3, 32, 13, -21),    // captured: wgmma
    detail::to_fp16(detail::hopper, fp8_e5m2, 32, 13, -21),    // captured: wgmma

    detail::to_fp32(detail::blackwell, fp16, 16, 25, -133),      // verified: B200
    detail::to_fp16(detail::blackwell, fp16, 16, 25, -21),       // verified: B200 (mma.sync)
    detail::to_fp32(detail::blackwell, bf16, 16, 25, -133),      // verified: B200
    detail::to_fp32(detail::blackwell, tf32, 8, 25, -133),       // verified: B200
    detail::to_fp32(detail::blackwell, fp8_e4m3, 32, 25, -133),  // tcgen05; documented
    detail::to_fp32(detail::blackwell, fp8_e5m2, 32, 25, -133),  // tcgen05; documented
    detail::to_fp16(detail::blackwell, fp8_e4m3, 32, 25, -21),   // documented
    detail::to_fp16(detail::blackwell, fp8_e5m2, 32, 25, -21),   // documented
};

/// The step of `core` for operands in `input` and an accumulator in `output`. Throws InvalidArgument where
/// the generation has none, or where constants are out of range.
[[nodiscard]] TensorCoreStep tensor_core_step(const TensorCore& core, const FloatFormat& input,
                                              const FloatFormat& output);

/// One step: c + the sum of a[i] b[i]. `a` and `b` hold numbers of `step.input` (of tf32, the low 13 bits are
/// ignored, as the instruction does); c is a number of `step.output`. Any NaN, infinity times zero, and
/// infinities of both signs give the one NaN, 0x7FFFFFFF, or where the output is fp16 its 0x7FFF, as a float
/// 0x7FFFE000; an infinity otherwise stays. Subnormal numbers are exact, overflow goes to infinity, a zero is
/// +0. A negative sum that rounds to zero is +0 on an H200. Throws InvalidArgument where `a` and `b` differ
/// in size or have more than `step.products` elements, or where a step has none or more than 64.
[[nodiscard]] float fused_step(std::span<const float> a, std::span<const float> b, float c,
                               const TensorCoreStep& step);

/// The dot product in steps of `step.products` ascending terms, the last one shorter, from c on. Throws
/// InvalidArgument where `a` and `b` differ in size, or where a step has no products or more than 64.
[[nodiscard]] float dot(std::span<const float> a, std::span<const float> b, float c,
                        const TensorCoreStep& step);

/// The FP8 mma.sync (32 products) of Hopper and Blackwell, which runs on the FP16 tensor core: from zero, a
/// step of the products with k % 4 in {0, 1}, then one of those in {2, 3}, then an IEEE addition of c in
/// `output`. `a` and `b` hold 32 FP8 numbers each, else InvalidArgument is thrown. Captured on an H200,
/// verified for fp16 on H100, H200 and B200 and for fp32 on B200.
[[nodiscard]] float fp8_step_on_fp16(std::span<const float> a, std::span<const float> b, float c,
                                     const FloatFormat& output);

}  // namespace halfscope
