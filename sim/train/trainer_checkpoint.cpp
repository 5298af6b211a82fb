// Saving a trainer's state, and resuming from it.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "sim/train/checkpoint_metadata.hpp"
#include "sim/train/trainer.hpp"

namespace halfscope {

namespace {

constexpr const char* model_prefix = "model.";

/// Null where no tensor has one of these names.
const Array* find_array(const SafetensorsFile& file, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto found = std::ranges::find(file.tensors, name, &NamedArray::name);
    if (found != file.tensors.end()) return &found->array;
  }
  return nullptr;
}

void check_shape(const ArrayReference& wanted, const Array& stored) {
  if (stored.shape() == wanted.array->shape()) return;
  throw InvalidArgument(fmt::format("tensor {} has shape {}, the model wants {}", wanted.name,
                                    to_string(stored.shape()), to_string(wanted.array->shape())));
}

}  // namespace

std::vector<ArrayReference> Trainer::model_arrays() {
  std::vector<ArrayReference> arrays;
  for (Parameter& parameter : model_.store->parameters)
    arrays.push_back({model_prefix + parameter.name, &parameter.master});
  for (Buffer& buffer : model_.store->buffers) arrays.push_back({model_prefix + buffer.name, &buffer.value});
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
    const std::string_view bare = std::string_view(entry.name).substr(std::string_view(model_prefix).size());
    const Array* const stored = find_array(weights, {entry.name, bare});
    if (stored == nullptr) continue;
    check_shape(entry, *stored);
    *entry.array = to_dtype(stored->to(settings_.device), DType::f32);
    found = true;
  }
  if (!found) throw InvalidArgument("no tensor has the name of one of the model's weights");
  for (Parameter& parameter : model_.store->parameters)
    caster_.cast(parameter.master, parameter.name, Role::master_weight);
}

void Trainer::restore(const SafetensorsFile& checkpoint) {
  for (const ArrayReference& entry : all_arrays()) {
    const Array* const stored = find_array(checkpoint, {entry.name});
    if (stored == nullptr) throw InvalidArgument("it lacks the tensor " + entry.name);
    check_shape(entry, *stored);
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
