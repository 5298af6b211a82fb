// Finds weights in a checkpoint.
#include "sim/tape/stored_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include <halfscope/kernel/cast/convert.hpp>

namespace halfscope {

const Array* find_weight(const SafetensorsFile& weights, std::string_view name) {
  for (const std::string& known : {std::string(model_prefix) + std::string(name), std::string(name)}) {
    const auto found = std::ranges::find(weights.tensors, known, &NamedArray::name);
    if (found != weights.tensors.end()) return &found->array;
  }
  return nullptr;
}

Array weight_of(const SafetensorsFile& weights, std::string_view name, const Shape& shape) {
  const Array* const stored = find_weight(weights, name);
  if (stored == nullptr) throw InvalidArgument(fmt::format("it lacks the tensor {}", name));
  check_stored_shape(name, stored->shape(), shape);
  return to_dtype(stored->clone(), DType::f32);
}

void check_stored_shape(std::string_view name, const Shape& stored, const Shape& wanted) {
  if (stored == wanted) return;
  throw InvalidArgument(
      fmt::format("tensor {} has shape {}, the model wants {}", name, to_string(stored), to_string(wanted)));
}

}  // namespace halfscope
