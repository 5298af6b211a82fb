// Saving a trainer's state, and resuming from it.
#include <fmt/format.h>

#include <algorithm>

#include "sim/train/checkpoint_metadata.hpp"
#include "sim/train/trainer.hpp"

namespace halfscope {

std::vector<ArrayReference> Trainer::all_arrays() {
  std::vector<ArrayReference> arrays;
  for (Parameter& parameter : model_.store->parameters)
    arrays.push_back({"model." + parameter.name, &parameter.master});
  for (Buffer& buffer : model_.store->buffers) arrays.push_back({"model." + buffer.name, &buffer.value});
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

void Trainer::restore(const SafetensorsFile& checkpoint) {
  for (const ArrayReference& entry : all_arrays()) {
    const auto stored = std::find_if(checkpoint.tensors.begin(), checkpoint.tensors.end(),
                                     [&](const NamedArray& tensor) { return tensor.name == entry.name; });
    if (stored == checkpoint.tensors.end()) throw InvalidArgument("it lacks the tensor " + entry.name);
    if (stored->array.shape() != entry.array->shape()) {
      throw InvalidArgument(fmt::format("tensor {} has shape {}, the model wants {}", entry.name,
                                        to_string(stored->array.shape()), to_string(entry.array->shape())));
    }
    *entry.array = stored->array.to(settings_.device);
  }
  steps_done_ = metadata_count(checkpoint, "step", {1, static_cast<double>(settings_.config.steps)});
  optimizer_->restore_steps(
      metadata_count(checkpoint, "optimizer_steps", {0, static_cast<double>(steps_done_)}));
  for (const ScalerNumber& number : scaler_->numbers()) {
    *number.value = metadata_number(checkpoint, "scaler_" + number.name, {number.low, number.high});
  }
}

}  // namespace halfscope
