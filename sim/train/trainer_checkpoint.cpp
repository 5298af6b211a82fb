// Saving a trainer's state, and resuming from it.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/stored_weights.hpp"
#include "sim/train/checkpoint_metadata.hpp"
#include "sim/train/trainer.hpp"

namespace halfscope {
namespace {

/// Null where no tensor has that name.
const Array* find_array(const SafetensorsFile& file, std::string_view name) {
  const auto found = std::ranges::find(file.tensors, name, &NamedArray::name);
  return found == file.tensors.end() ? nullptr : &found->array;
}

}  // namespace

std::vector<ArrayReference> Trainer::model_arrays() {
  std::vector<ArrayReference> arrays;
  for (Parameter& parameter : model_.store->parameters)
    arrays.push_back({std::string(model_prefix) + parameter.name, &parameter.master});
  for (Buffer& buffer : model_.store->buffers)
    arrays.push_back({std::string(model_prefix) + buffer.name, &buffer.value});
  return arrays;
}

std::vector<ArrayReference> Trainer::all_arrays() {
  std::vector<ArrayReference> arrays = model_arrays();
  for (ArrayReference& state : optimizer_->state())
    arrays.push_back({"optimizer." + state.name, state.array});
  return arrays;
}

SafetensorsFile Trainer::checkpoint() {
  SafetensorsFile file;
  for (const ArrayReference& entry : all_arrays())
    file.tensors.push_back({entry.name, entry.array->to(Device::cpu)});
  file.metadata = {{"step", fmt::format("{}", steps_done_)},
                   {"optimizer_steps", fmt::format("{}", optimizer_->steps())}};
  for (const ScalerNumber& number : scaler_->numbers()) {
    file.metadata["scaler_" + number.name] = fmt::format("{}", *number.value);
  }
  return file;
}

void Trainer::start_from(const SafetensorsFile& weights) {
  const DeviceScope scope(settings_.device);
  bool found = false;
  for (const ArrayReference& entry : model_arrays()) {
    const Array* const stored =
        find_weight(weights, std::string_view(entry.name).substr(model_prefix.size()));
    if (stored == nullptr) continue;
    check_stored_shape(entry.name, stored->shape(), entry.array->shape());
    *entry.array = to_dtype(stored->to(settings_.device), DType::f32);
    found = true;
  }
  if (!found) throw InvalidArgument("no tensor has the name of one of the model's weights");
  for (Parameter& parameter : model_.store->parameters)
    caster_.cast(parameter.master, parameter.name, Role::master_weight);
}

void Trainer::restore(const SafetensorsFile& checkpoint) {
  for (const ArrayReference& entry : all_arrays()) {
    const Array* const stored = find_array(checkpoint, entry.name);
    if (stored == nullptr) throw InvalidArgument("it lacks the tensor " + entry.name);
    check_stored_shape(entry.name, stored->shape(), entry.array->shape());
    *entry.array = stored->to(settings_.device);
  }
  steps_done_ = metadata_count(checkpoint, "step", {1, static_cast<double>(settings_.config.steps)});
  optimizer_->restore_steps(
      metadata_count(checkpoint, "optimizer_steps", {0, static_cast<double>(steps_done_)}));
  for (const ScalerNumber& number : scaler_->numbers()) {
    *number.value = metadata_number(checkpoint, "scaler_" + number.name, {number.low, number.high});
  }
}

}  // namespace halfscope
