// Brings operands of products into formats of their own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/cast/round.hpp>

#include "lib/nn/elementwise.hpp"
#include "sim/tape/cast.hpp"

namespace halfscope {
namespace {

/// The role of the tensor that an operand is made of.
Role role_of(const OperandPlace& place) {
  if (place.product != ProductKind::forward && place.side == OperandSide::left)
    return Role::activation_gradient;
  const bool weight = place.product != ProductKind::weight_gradient && place.side == OperandSide::right;
  return weight ? Role::weight : Role::activation;
}

/// The largest magnitude, infinity included and NaNs left out.
float magnitude_of(std::span<const float> values) {
  const float largest = largest_magnitude(values);
  if (std::isfinite(largest)) return largest;
  std::uint32_t bits = 0;
  for (const float x : values)
    if (magnitude_bits(x) <= infinity_bits) bits = std::max(bits, magnitude_bits(x));
  return from_bits(bits);
}

/// Hadamard's transform of the rows' groups, rounded to BF16 as a GPU's kernel hands it over. Numbers left
/// over at the end of a row stay unchanged in both operands, so that their product does too.
void transform(const OperandMatrix& operand) {
  const std::int64_t columns = operand.shape.columns, whole = columns - columns % std::ssize(hadamard_signs);
  constexpr std::int64_t rows_per_range = 16;
  parallel_for_ranges(operand.shape.rows, rows_per_range, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t row = first; row < first + count; ++row)
      hadamard_16(
          operand.values.subspan(static_cast<std::size_t>(row * columns), static_cast<std::size_t>(whole)));
  });
  round_in_threads(operand.values, {.format = bf16});
}

/// The operand's name in a checkpoint, and of its random bits.
std::string name_of(const OperandMatrix& operand) {
  return fmt::format("{}.{}", operand.layer, to_string(operand.place));
}

}  // namespace

void Caster::quantise(const OperandMatrix& operand, const OperandFormat& format, const CastContext& context) {
  const Site where = site(operand.layer, role_of(operand.place), context, operand.part);
  if (format.transform == OperandTransform::hadamard) transform(operand);
  if (const auto* blocks = std::get_if<BlockFormat>(&format.format))
    return round_in_blocks(operand, *blocks, where);
  round_scaled(operand, format, where);
}

RandomStream Caster::operand_stream(const OperandMatrix& operand, Site where) const {
  const std::string name = name_of(operand);
  where.tensor = name;
  return cast_stream(where);
}

void Caster::round_in_blocks(const OperandMatrix& operand, const BlockFormat& format, const Site& where) {
  const RandomStream stream = operand_stream(operand, where);
  if (!events_.watches_operands())
    return round_blocks(operand.values, operand.values, operand.shape, format, stream);
  const BlockCounts counts = count_blocks(operand.values, operand.shape, format, stream, operand.values);
  events_.notify_operand({where, operand.place, format.scale(), counts});
}

float Caster::operand_scale(const OperandMatrix& operand, const OperandFormat& format) const {
  if (format.scaling == TensorScaling::none) return 1;
  const float largest = from_bits(element_format(format.format).max_finite_bits());
  const float amax = magnitude_of(operand.values);
  if (format.scaling == TensorScaling::current) return current_scale(amax, largest);
  const std::string name = name_of(operand);
  if (context_.operand_maxima != nullptr) {
    OperandMaximum& seen = (*context_.operand_maxima)[name];
    seen = {std::max(seen.amax, amax), largest, format.delayed};
  }
  return context_.operand_scales == nullptr ? 1 : context_.operand_scales->scale(name);
}

void Caster::round_scaled(const OperandMatrix& operand, const OperandFormat& format, const Site& where) {
  const Quantizer& quantizer = std::get<Quantizer>(format.format);
  const float factor = operand_scale(operand, format);
  if (events_.watches_operands()) {
    const BlockCounts counts = count_scaled(operand.values, quantizer, factor);
    events_.notify_operand({where, operand.place, ScaleFormat::fp32, counts});
  }
  if (factor != 1) scale(operand.values, factor, operand.values);
  round_in_threads(operand.values, quantizer, operand_stream(operand, where));
  if (factor != 1) scale(operand.values, 1 / factor, operand.values);
}

}  // namespace halfscope
