// Builds the convolutional classifier.
#include "sim/models/models.hpp"

#include "sim/layers/layers.hpp"
#include "sim/models/accuracy.hpp"
#include "sim/models/classifier.hpp"
#include "sim/models/dense_layer.hpp"
#include "sim/models/normalised_convolution.hpp"

namespace halfscope {
namespace {

struct ConvBlock {
  std::string index;
  NormalisedConvolution layers;
};

ConvBlock add_conv_block(ParameterStore& store, const ModelSpec& spec, std::string index, std::int64_t in,
                         std::int64_t out) {
  NormalisedConvolutionSpec layers{"conv" + index, "bn" + index, 3, in, out};
  return {std::move(index), add_normalised_convolution(store, spec, layers)};
}

TensorRef conv_block(Tape& tape, TensorRef x, const ConvBlock& block) {
  x = relu(tape, "relu" + block.index, convolve(tape, x, block.layers));
  return max_pool(tape, "pool" + block.index, x);
}

}  // namespace

Model make_cnn_bn(const ModelSpec& spec) {
  check_takes_images("cnn_bn", spec.example_shape);
  const std::int64_t height = spec.example_shape.at(0), width = spec.example_shape.at(1);
  if (height % 4 != 0 || width % 4 != 0) {
    throw InvalidArgument("model cnn_bn pools twice: images need sides that are multiples of 4, not " +
                          to_string(spec.example_shape));
  }
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  ParameterStore& store = *model.store;
  const ConvBlock first = add_conv_block(store, spec, "1", spec.example_shape.at(2), 16);
  const ConvBlock second = add_conv_block(store, spec, "2", 16, 32);
  const LinearParameters hidden = add_dense_layer(store, spec, {"fc1", height / 4 * (width / 4) * 32, 128});
  const LinearParameters output = add_dense_layer(store, spec, {"fc2", 128, spec.class_count, 0.5f});

  model.forward = [first, second, hidden, output, smoothing = spec.label_smoothing](Tape& tape,
                                                                                    const Batch& batch) {
    TensorRef x = tape.input("input", batch.inputs.to(active_device()));
    x = conv_block(tape, x, first);
    x = conv_block(tape, x, second);
    x = relu(tape, "relu3", linear(tape, "fc1", x, hidden));
    const TensorRef logits = linear(tape, "fc2", x, output);
    return classify(tape, {"cnn_bn", smoothing}, logits, batch);
  };
  return model;
}

}  // namespace halfscope
