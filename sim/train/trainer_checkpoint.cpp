// Saving a trainer's state, and resuming from it.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/tape/stored_weights.hpp"
#include "sim/train/checkpoint_metadata.hpp"
#include "sim/train/trainer.hpp"

namespace halfscope {
namespace {

/// Before the names of operands whose delayed scales a checkpoint holds.
constexpr std::string_view operand_prefix = "operand_scale.";

/// Null where no tensor has that name.
const Array* find_array(const SafetensorsFile& file, std::string_view name) {
  const auto found = std::ranges::find(file.tensors, name, &NamedArray::name);
  return found == file.tensors.end() ? nullptr : &found->array;
}

/// `kind`, of a further loss with its name behind it.
std::string key_of(std::string_view kind, const Learner& learner) {
  const std::string& name = learner.loss().name;
  return name.empty() ? std::string(kind) : fmt::format("{}_{}", kind, name);
}

}  // namespace

std::vector<ArrayReference> Trainer::model_arrays() {
  std::vector<ArrayReference> arrays;
  for (ParameterStore* store : stores()) {
    for (Parameter& parameter : store->parameters)
      arrays.push_back({std::string(model_prefix) + parameter.name, &parameter.master});
    for (Buffer& buffer : store->buffers)
      arrays.push_back({std::string(model_prefix) + buffer.name, &buffer.value});
  }
  return arrays;
}

std::vector<ArrayReference> Trainer::all_arrays() {
  std::vector<ArrayReference> arrays = model_arrays();
  for (Learner& learner : learners_) {
    for (ArrayReference& state : learner.optimizer().state())
      arrays.push_back({"optimizer." + state.name, state.array});
    std::vector<Array>& rests = learner.compensated().rests();
    for (std::size_t i = 0; i < rests.size(); ++i)
      arrays.push_back({"rest." + learner.store().parameters[i].name, &rests[i]});
  }
  return arrays;
}

std::vector<Trainer::NamedNumber> Trainer::scaler_numbers() {
  std::vector<NamedNumber> all;
  for (std::size_t i = 0; i < scalers_.size(); ++i) {
    const std::string key = key_of("scaler", learners_[i]);
    for (ScalerNumber& number : scalers_[i]->numbers()) {
      std::string name = key + "_" + number.name;
      all.push_back({std::move(name), std::move(number)});
    }
  }
  return all;
}

SafetensorsFile Trainer::checkpoint() {
  SafetensorsFile file;
  for (const ArrayReference& entry : all_arrays())
    file.tensors.push_back({entry.name, entry.array->to(Device::cpu)});
  for (auto& [operand, state] : operand_scales_.state())
    file.tensors.push_back({std::string(operand_prefix) + operand, std::move(state)});
  file.metadata = {{"step", fmt::format("{}", steps_done_)}};
  for (const Learner& learner : learners_)
    file.metadata[key_of("optimizer", learner) + "_steps"] = fmt::format("{}", learner.optimizer().steps());
  for (const auto& [name, number] : scaler_numbers()) file.metadata[name] = fmt::format("{}", *number.value);
  return file;
}

void Trainer::store_weights() {
  for (Learner& learner : learners_) learner.compensated().begin();
  for (ParameterStore* store : stores()) {
    for (Parameter& parameter : store->parameters)
      caster_.cast(parameter.master, parameter.name, Role::master_weight, {});
  }
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
  store_weights();
}

void Trainer::restore_operand_scales(const SafetensorsFile& checkpoint) {
  for (const NamedArray& stored : checkpoint.tensors) {
    if (stored.name.starts_with(operand_prefix))
      operand_scales_.restore(stored.name.substr(operand_prefix.size()), stored.array);
  }
  const bool is_delayed = std::ranges::any_of(caster_.policy().operands, [](const OperandRule& rule) {
    return rule.format && rule.format->scaling == TensorScaling::delayed;
  });
  if (is_delayed && operand_scales_.empty())
    throw InvalidArgument(
        fmt::format("it lacks the delayed scales of operands, {}LAYER.PRODUCT.SIDE", operand_prefix));
}

void Trainer::restore(const SafetensorsFile& checkpoint) {
  for (const ArrayReference& entry : all_arrays()) {
    const Array* const stored = find_array(checkpoint, entry.name);
    if (stored == nullptr) throw InvalidArgument("it lacks the tensor " + entry.name);
    check_stored_shape(entry.name, stored->shape(), entry.array->shape());
    *entry.array = stored->to(settings_.device);
  }
  restore_operand_scales(checkpoint);
  steps_done_ = metadata_count(checkpoint, "step", {1, static_cast<double>(settings_.config.steps)});
  follow_policy(steps_done_);
  for (const Learner& learner : learners_) {
    learner.optimizer().restore_steps(metadata_count(checkpoint, key_of("optimizer", learner) + "_steps",
                                                     {0, static_cast<double>(steps_done_)}));
  }
  for (const auto& [name, number] : scaler_numbers())
    *number.value = metadata_number(checkpoint, name, {number.low, number.high});
}

}  // namespace halfscope
