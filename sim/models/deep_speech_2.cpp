// Builds Deep Speech 2.
#include "sim/models/models.hpp"

#include <cmath>

#include "sim/layers/layers.hpp"
#include "sim/models/parts/character_error_rate.hpp"
#include "sim/models/parts/convolution.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/spoken_frames.hpp"

namespace halfscope {
namespace deep_speech_2 {
namespace {

constexpr std::int64_t channels = 16, kernel = 5;
constexpr Stride first_stride{2, 2}, second_stride{1, 2};  // in time and in frequency
constexpr std::int64_t time_stride = first_stride.rows * second_stride.rows;

Parameter& add_uniform(ParameterStore& store, const ModelSpec& spec, const std::string& name,
                       const Shape& shape) {
  const float bound = 1.0f / std::sqrt(static_cast<float>(shape[0]));
  return store.add(name, uniform_weights(shape, bound, spec.seed, name));
}

RecurrentParameters add_gru(ParameterStore& store, const ModelSpec& spec, const std::string& name,
                            std::int64_t in) {
  const std::int64_t hidden = spec.whole(hidden_size_option), gates = 3 * hidden;
  Parameter& input_weight = add_uniform(store, spec, name + ".input_weight", {in, gates});
  Parameter& input_bias = store.add(name + ".input_bias", constant_weights({gates}, 0));
  Parameter& hidden_weight = add_uniform(store, spec, name + ".hidden_weight", {hidden, gates});
  return {input_weight, input_bias, hidden_weight,
          store.add(name + ".hidden_bias", constant_weights({gates}, 0))};
}

/// x (batch, time, frequency, channel) with zeros in padding.
TensorRef without_padding(Tape& tape, const std::string& name, TensorRef x, const Lengths& lengths) {
  const Shape shape = tape.value(x).shape();
  const auto rows = spoken_rows(lengths, OuterAxis::batch,
                                [&](std::int64_t t, std::int64_t b) { return b * lengths.time + t; });
  return take_rows(tape, name, x, {rows, shape[2] * shape[3], shape, AbsentRows::zeros});
}

/// (time, batch, frequency * channel) of the same, with zeros in padding.
TensorRef as_sequence(Tape& tape, TensorRef x, const Lengths& lengths) {
  const Shape shape = tape.value(x).shape();
  const std::int64_t features = shape[2] * shape[3];
  const auto rows = spoken_rows(lengths, OuterAxis::time,
                                [&](std::int64_t t, std::int64_t b) { return b * lengths.time + t; });
  return take_rows(tape, "frames", x,
                   {rows, features, {lengths.time, lengths.batch(), features}, AbsentRows::zeros});
}

/// x (time, batch, features) with each utterance from its last step to its first.
TensorRef reversed(Tape& tape, const std::string& name, TensorRef x, const Lengths& lengths) {
  const Shape shape = tape.value(x).shape();
  const auto rows = spoken_rows(lengths, OuterAxis::time, [&](std::int64_t t, std::int64_t b) {
    return (lengths.of(b) - 1 - t) * lengths.batch() + b;
  });
  return take_rows(tape, name, x, {rows, shape[2], shape, AbsentRows::zeros});
}

struct DeepSpeech {
  Convolution conv1, conv2;
  RecurrentParameters forward, backward;
  LinearParameters output;

  [[nodiscard]] BatchOutcome run(Tape& tape, const Batch& batch) const {
    const Lengths lengths = lengths_of("deep_speech_2", batch, time_stride);
    Array inputs = batch.inputs.to(active_device());
    inputs.reshape({inputs.extent(0), inputs.extent(1), inputs.extent(2), 1});
    TensorRef x = convolve_relu(tape, tape.input("features", std::move(inputs)), conv1);
    x = convolve_relu(tape, without_padding(tape, "conv1.spoken", x, lengths), conv2);
    x = as_sequence(tape, x, lengths);
    const TensorRef ahead = gru(tape, "gru.forward", x, forward);
    TensorRef back = gru(tape, "gru.backward", reversed(tape, "frames.reversed", x, lengths), backward);
    back = reversed(tape, "gru.backward.reversed", back, lengths);
    const TensorRef logits = linear(tape, "output", concat_channels(tape, "states", ahead, back), output);
    return {ctc_loss(tape, "loss", logits, {lengths.steps, batch.label_counts, batch.labels}), {logits}};
  }
};

DeepSpeech add_layers(ParameterStore& store, const ModelSpec& spec) {
  const std::int64_t frequencies =
      left_of(left_of(spec.example_shape[1], first_stride.columns), second_stride.columns);
  const std::int64_t in = frequencies * channels, states = 2 * spec.whole(hidden_size_option);
  Convolution conv1 = add_convolution(
      store, spec, {.name = "conv1", .size = kernel, .in = 1, .out = channels, .stride = first_stride});
  Convolution conv2 = add_convolution(
      store, spec,
      {.name = "conv2", .size = kernel, .in = channels, .out = channels, .stride = second_stride});
  const RecurrentParameters forward = add_gru(store, spec, "gru.forward", in),
                            backward = add_gru(store, spec, "gru.backward", in);
  Parameter& weight = add_uniform(store, spec, "output.weight", {states, spec.class_count});
  return {std::move(conv1),
          std::move(conv2),
          forward,
          backward,
          {weight, store.add("output.bias", constant_weights({spec.class_count}, 0))}};
}

}  // namespace
}  // namespace deep_speech_2

namespace {

Model make_deep_speech_2(const ModelSpec& spec) {
  using namespace deep_speech_2;
  check_speech("deep_speech_2", spec);
  Model model{std::make_unique<ParameterStore>(), nullptr,
              [] { return make_character_error_rate(time_stride); }};
  model.forward = [layers = add_layers(*model.store, spec)](Tape& tape, const Batch& batch) {
    return layers.run(tape, batch);
  };
  return model;
}

}  // namespace

constexpr ModelKind deep_speech_2_kind{make_deep_speech_2, {hidden_size_option}};

}  // namespace halfscope
