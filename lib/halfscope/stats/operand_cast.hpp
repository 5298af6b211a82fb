// Brings an operand of a product into a format of its own, for those who train with it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <halfscope/format/tensor_format.hpp>
#include <halfscope/stats/block_counts.hpp>
#include <halfscope/stats/site.hpp>

namespace halfscope {

/// The role of the tensor that an operand is made of.
[[nodiscard]] constexpr Role role_of(const OperandPlace& place) {
  if (place.product != ProductKind::forward && place.side == OperandSide::left)
    return Role::activation_gradient;
  const bool weight = place.product != ProductKind::weight_gradient && place.side == OperandSide::right;
  return weight ? Role::weight : Role::activation;
}

/// The largest magnitude, infinity included and NaNs left out.
[[nodiscard]] float operand_magnitude(std::span<const float> values);

/// Hadamard's transform of the groups of 16 columns, rounded to BF16 as a GPU's kernel hands it over. Numbers
/// left over at the end of a row stay unchanged in both operands of a product, so that their product does
/// too.
void transform_operand(std::span<float> values, const MatrixShape& shape);

/// How an operand is rounded. `factor` is the scale of one whose format has no blocks.
struct OperandCast {
  TensorFormat format{};
  float factor = 1;
  RandomStream stream{};
};

enum class OperandCounting : std::uint8_t { none, counted };

/// Rounds a matrix in place, with blocks along its columns, split over the threads; a format without blocks
/// rounds factor x and divides by the factor again. Returns the counts where they are asked for.
std::optional<BlockCounts> round_operand(std::span<float> values, const MatrixShape& shape,
                                         const OperandCast& cast, OperandCounting counting);
/// Format of the scales that the counts are of.
[[nodiscard]] ScaleFormat operand_scales_format(const TensorFormat& format);

}  // namespace halfscope
