// Builds the convolutional classifier.
#include "sim/models/cnn_bn.hpp"

#include <fmt/format.h>

#include "sim/layers/layers.hpp"
#include "sim/models/models.hpp"
#include "sim/models/parts/accuracy.hpp"
#include "sim/models/parts/classifier.hpp"
#include "sim/models/parts/dense_layer.hpp"
#include "sim/models/parts/model_options.hpp"

namespace halfscope {
namespace cnn_bn {
namespace {

void check_sides(const Shape& images) {
  check_takes_images("cnn_bn", images);
  if (images.at(0) % 4 == 0 && images.at(1) % 4 == 0) return;
  throw InvalidArgument("model cnn_bn pools twice: images need sides that are multiples of 4, not " +
                        to_string(images));
}

NormalisedConvolution add_block(ParameterStore& store, const ModelSpec& spec, int index, std::int64_t in,
                                std::int64_t out) {
  return add_normalised_convolution(store, spec,
                                    {fmt::format("conv{}", index), fmt::format("bn{}", index), 3, in, out});
}

}  // namespace
}  // namespace cnn_bn

CnnBn add_cnn_bn(ParameterStore& store, const ModelSpec& spec) {
  using namespace cnn_bn;
  check_sides(spec.example_shape);
  const std::int64_t pixels = spec.example_shape.at(0) / 4 * (spec.example_shape.at(1) / 4);
  const NormalisedConvolution first = add_block(store, spec, 1, spec.example_shape.at(2), 16);
  const NormalisedConvolution second = add_block(store, spec, 2, 16, 32);
  const LinearParameters hidden = add_dense_layer(store, spec, {"fc1", pixels * 32, cnn_bn_features});
  const LinearParameters classes =
      add_dense_layer(store, spec, {"fc2", cnn_bn_features, spec.class_count, 0.5f});
  return {{first, second}, hidden, classes};
}

TensorRef features_of(Tape& tape, const CnnBn& model, TensorRef images) {
  TensorRef x = images;
  int index = 0;
  for (const NormalisedConvolution& layers : model.convolutions) {
    x = relu(tape, fmt::format("relu{}", ++index), convolve(tape, x, layers));
    x = max_pool(tape, fmt::format("pool{}", index), x);
  }
  return relu(tape, "relu3", linear(tape, "fc1", x, model.hidden));
}

namespace {

Model make_cnn_bn(const ModelSpec& spec) {
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  const CnnBn network = add_cnn_bn(*model.store, spec);
  model.forward = [network, smoothing = spec.fp32(label_smoothing_option)](Tape& tape, const Batch& batch) {
    const TensorRef images = tape.input("input", batch.inputs.to(active_device()));
    const TensorRef logits = linear(tape, "fc2", features_of(tape, network, images), network.classes);
    return classify(tape, {"cnn_bn", smoothing}, logits, batch);
  };
  return model;
}

}  // namespace

constexpr ModelKind cnn_bn_kind{make_cnn_bn, {label_smoothing_option, batch_norm_epsilon_option}};

}  // namespace halfscope
