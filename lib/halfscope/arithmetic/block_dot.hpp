// Dot products of numbers that share scales by blocks: the block-scaled tensor cores of Blackwell, and FP8
// sums that are promoted to FP32.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <halfscope/arithmetic/tensor_core.hpp>
#include <halfscope/format/block_format.hpp>

namespace halfscope {

/// The instructions, as PTX names them.
enum class BlockScaledKind : std::uint8_t { mxf8f6f4, mxf4, mxf4nvf4 };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<BlockScaledKind>{"mxf8f6f4", "mxf4", "mxf4nvf4"};

/// Numbers of one row or column, and an FP32 scale for each `Promotion::terms` of them; no scales stand for
/// ones.
struct ScaledTerms {
  std::span<const float> values;
  std::span<const float> scales{};
};

/// How a promoted sum takes a partial sum times its scale.
enum class ScaledAdd : std::uint8_t {
  fused,     ///< in one rounding, as nvcc contracts DeepGEMM's source
  separate,  ///< the product is rounded first
};

/// How many terms a tensor core adds up before the total in FP32 takes their sum.
struct Promotion {
  int terms = 128;  ///< a multiple of the step's products, as whole instructions have it
  ScaledAdd add = ScaledAdd::fused;
};

/// c plus the sums that `step` makes of each `promotion.terms` products from +0 on, times the product of
/// their scales rounded to FP32, each added in FP32 (nearest even) as CUDA cores do: DeepGEMM on Hopper. The
/// last sum may have fewer terms. Every NaN is 0x7FFFFFFF. Throws InvalidArgument for operands of different
/// lengths, another number of scales, a step whose sums are not FP32, or terms that are no multiple of its
/// products.
[[nodiscard]] float promoted_dot(const ScaledTerms& a, const ScaledTerms& b, float c,
                                 const TensorCoreStep& step, const Promotion& promotion);

/// Throws InvalidArgument unless sums of `step` can be promoted after `terms` products.
void check_promotion(const TensorCoreStep& step, int terms);

/// A unit of Blackwell's tensor cores with scaled operands. A step adds `products` products to an FP32
/// accumulator: terms and accumulator are aligned to the largest of their exponents, each is cut off toward
/// zero `fraction_bits` below it, and their exact sum is cut off to FP32. A term is the exact sum of `group`
/// products times the scales of a and b. The exponent of a single product is the sum of its factors' and its
/// scales'; that of a group is the sum of its scales' alone.
struct BlockScaledUnit {
  BlockScaledKind kind;
  ScaleFormat scale;
  int block;          ///< elements that share a scale
  int products;       ///< per step, at most
  int group;          ///< products per term: 1, or 16 of FP4
  int fraction_bits;  ///< kept below the largest exponent
  int zero_exponent;  ///< counts for a term whose products are all zero, or whose scale is
};

/// All as MMA-Sim 2.1.1 describes them, and an independent model in exact rationals: no GPU's products have
/// been compared. With groups the zero exponent cannot be seen in results.
inline constexpr std::array block_scaled_units{
    BlockScaledUnit{BlockScaledKind::mxf8f6f4, ScaleFormat::e8m0, 32, 32, 1, 25, -133},  // MXFP8, MXFP6, FP4
    BlockScaledUnit{BlockScaledKind::mxf4, ScaleFormat::e8m0, 32, 64, 16, 35, -139},     // MXFP4
    BlockScaledUnit{BlockScaledKind::mxf4nvf4, ScaleFormat::e8m0, 16, 64, 16, 35,
                    -139},  // MXFP4, blocks of 16
    BlockScaledUnit{BlockScaledKind::mxf4nvf4, ScaleFormat::ue4m3, 16, 64, 16, 35, -139},  // NVFP4
};

/// Throws InvalidArgument where the unit does not take the elements.
void check_block_elements(const FloatFormat& element, const BlockScaledUnit& unit);

/// The unit of these; throws InvalidArgument with those of the kind.
[[nodiscard]] const BlockScaledUnit& block_scaled_unit(BlockScaledKind kind, ScaleFormat scale);
/// The unit that multiplies numbers of both formats, whose blocks may have several rows, and several of the
/// unit's in a row: each of these then has the block's scale. Throws InvalidArgument where the kind has none
/// for their scales, or where the unit does not take their blocks or elements.
[[nodiscard]] const BlockScaledUnit& block_scaled_unit(BlockScaledKind kind, const BlockFormat& a,
                                                       const BlockFormat& b);

/// A row or column in a block format: codes of `element`, and one of the unit's scale format for each block,
/// of which the last may be short.
struct BlockOperand {
  FloatFormat element;
  std::span<const std::uint8_t> elements;
  std::span<const std::uint32_t> scales;
};

/// c + the sum of the products of a and b in ascending steps. The tensors' own scales are not in it: a GEMM
/// multiplies the sum by them. A NaN among elements or scales, infinity times zero, and infinities of both
/// signs give 0x7FFFFFFF; a NaN scale does so over zeros too. The sign bit of a UE4M3 scale is ignored. A
/// zero is +0. Throws InvalidArgument for operands of different lengths, with another number of scales, or
/// with elements that the unit does not take.
[[nodiscard]] float block_dot(const BlockOperand& a, const BlockOperand& b, float c,
                              const BlockScaledUnit& unit);

}  // namespace halfscope
