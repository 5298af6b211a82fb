// A model as a newcomer would add it: logistic regression on the pixels.
#include "sim/layers/layers.hpp"
#include "sim/models/models.hpp"
#include "sim/models/parts/accuracy.hpp"
#include "sim/models/parts/classifier.hpp"
#include "sim/models/parts/dense_layer.hpp"

namespace halfscope {
namespace {

constexpr EntryOption gain{"sample_gain", 1, {0, 2}, "factor of the initial weights"};

Model make_sample_model(const ModelSpec& spec) {
  if (spec.example_shape != Shape{4, 4, 1}) {
    throw InvalidArgument("model sample_model takes images of 4x4, not " + to_string(spec.example_shape));
  }
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  const LinearParameters output =
      add_dense_layer(*model.store, spec, {"fc", 16, spec.class_count, spec.fp32(gain)});
  model.forward = [output](Tape& tape, const Batch& batch) {
    const TensorRef x = tape.input("input", batch.inputs.to(active_device()));
    return classify(tape, {"sample_model"}, linear(tape, "fc", x, output), batch);
  };
  return model;
}

}  // namespace

constexpr ModelKind sample_model_kind{make_sample_model, {gain}};

}  // namespace halfscope
