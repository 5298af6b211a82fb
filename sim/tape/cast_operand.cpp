// Brings operands of products into formats of their own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/stats/operand_cast.hpp>

#include "sim/tape/cast.hpp"

namespace halfscope {
namespace {

/// The operand's name in a checkpoint, and of its random bits.
std::string name_of(const OperandMatrix& operand) {
  return fmt::format("{}.{}", operand.layer, to_string(operand.place));
}

OperandMagnitude magnitude_of(const OperandMatrix& operand, const OperandFormat& format, float scale) {
  OperandMagnitude magnitude{.amax = operand_magnitude(operand.values),
                             .largest = largest_element(format.format)};
  if (format.scaling == TensorScaling::delayed) {
    magnitude.delayed_scale = scale;
    magnitude.delayed_aim = std::ldexp(magnitude.largest, -format.delayed.margin);
  }
  return magnitude;
}

}  // namespace

void Caster::quantise(const OperandMatrix& operand, const OperandFormat& format, const CastContext& context) {
  const Site where = site(operand.layer, role_of(operand.place), context, operand.part);
  if (format.transform == OperandTransform::hadamard) transform_operand(operand.values, operand.shape);
  const OperandCast cast{format.format, operand_scale(operand, format), operand_stream(operand, where)};
  if (!events_.watches_operands()) {
    (void)round_operand(operand.values, operand.shape, cast, OperandCounting::none);
    return;
  }
  const OperandMagnitude magnitude = magnitude_of(operand, format, cast.factor);
  const auto counts = round_operand(operand.values, operand.shape, cast, OperandCounting::counted);
  events_.notify_operand({where, operand.place, operand_scales_format(format.format), magnitude, *counts});
}

RandomStream Caster::operand_stream(const OperandMatrix& operand, Site where) const {
  const std::string name = name_of(operand);
  where.tensor = name;
  return cast_stream(where);
}

float Caster::operand_scale(const OperandMatrix& operand, const OperandFormat& format) const {
  if (format.scaling == TensorScaling::none) return 1;
  const float largest = largest_element(format.format);
  const float amax = operand_magnitude(operand.values);
  if (format.scaling == TensorScaling::current) return current_scale(amax, largest);
  const std::string name = name_of(operand);
  if (context_.operand_maxima != nullptr) {
    OperandMaximum& seen = (*context_.operand_maxima)[name];
    seen = {std::max(seen.amax, amax), largest, format.delayed};
  }
  return context_.operand_scales == nullptr ? 1 : context_.operand_scales->scale(name);
}

}  // namespace halfscope
