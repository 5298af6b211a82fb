// Weights of a checkpoint, by the names of a model's.
#pragma once

#include <string_view>

#include <halfscope/device/array.hpp>
#include <halfscope/io/safetensors/safetensors.hpp>

#include "sim/tape/parameter.hpp"

namespace halfscope {

/// Before the names of weights in a run's checkpoint.
inline constexpr std::string_view model_prefix = "model.";

/// The tensor NAME or model.NAME; null where there is neither.
[[nodiscard]] const Array* find_weight(const SafetensorsFile& weights, std::string_view name);

/// The same as floats of that shape in host memory. Throws InvalidArgument where it is absent or has another
/// shape.
[[nodiscard]] Array weight_of(const SafetensorsFile& weights, std::string_view name, const Shape& shape);

/// Throws InvalidArgument unless the tensor `name` of a file has the shape that the model wants.
void check_stored_shape(std::string_view name, const Shape& stored, const Shape& wanted);

}  // namespace halfscope
