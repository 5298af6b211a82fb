// Builds Jasper.
#include <fmt/format.h>

#include <array>
#include <vector>

#include "sim/layers/layers.hpp"
#include "sim/models/models.hpp"
#include "sim/models/parts/character_error_rate.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/normalised_convolution.hpp"
#include "sim/models/parts/spoken_frames.hpp"
#include "sim/models/parts/width.hpp"

namespace halfscope {
namespace jasper {
namespace {

constexpr std::int64_t time_stride = 2, repeats = 5;

/// A convolution's frames and its channels at width 1.
struct Filter {
  std::int64_t frames, channels;
};
constexpr Filter first_filter{11, 256}, wide_filter{29, 896}, last_filter{1, 1024};
constexpr std::array<Filter, 10> block_filters{{{11, 256},
                                                {11, 256},
                                                {13, 384},
                                                {13, 384},
                                                {17, 512},
                                                {17, 512},
                                                {21, 640},
                                                {21, 640},
                                                {25, 768},
                                                {25, 768}}};

/// Adds layers of the model's width.
class Builder {
 public:
  Builder(ParameterStore& store, const ModelSpec& spec) : store_(store), spec_(spec) {}

  [[nodiscard]] std::int64_t channels(const Filter& filter) const { return at_width(spec_, filter.channels); }

  [[nodiscard]] NormalisedConvolution add(const std::string& name, std::int64_t in, const Filter& filter,
                                          std::int64_t stride = 1) const {
    const std::int64_t out = channels(filter);
    Parameter& weight = add_filter(store_, spec_, name, {filter.frames, 1, in, out});
    return {name,
            name + ".bn",
            {.weight = weight, .stride = {stride, 1}},
            add_batch_norm(store_, spec_, name + ".bn", out)};
  }

  [[nodiscard]] LinearParameters add_output(std::int64_t in) const {
    const std::string name = "output.weight";
    Parameter& weight =
        store_.add(name, layer_weights(spec_, {in, spec_.class_count}, he_deviation(in) / 2, name));
    return {weight, store_.add("output.bias", constant_weights({spec_.class_count}, 0))};
  }

 private:
  ParameterStore& store_;
  const ModelSpec& spec_;
};

/// One of the ten: its convolutions, and those of the residuals, one for each output before it.
struct Block {
  std::string name;
  std::vector<NormalisedConvolution> convolutions, residuals;
};

/// A forward pass over the frames of a batch that are no padding, which stand one behind the other as (1,
/// frames, 1, channels).
class Frames {
 public:
  Frames(Tape& tape, const Lengths& lengths, float dropout)
      : tape_(tape), lengths_(lengths), dropout_(dropout) {
    std::int32_t first = 0;
    for (std::int64_t b = 0; b < lengths.batch(); ++b) {
      firsts_.push_back(first);
      first += static_cast<std::int32_t>(lengths.of(b));
      for (std::int64_t t = 0; t < lengths.of(b); ++t)
        kept_.push_back(static_cast<std::int32_t>(b * lengths.time + t));
    }
    padded_ = padded_rows(OuterAxis::batch);
  }

  /// The batch norm of a convolution of x, padded frames in (batch, time, 1, channels).
  [[nodiscard]] TensorRef convolve_padded(TensorRef x, const NormalisedConvolution& layers) const {
    const TensorRef y = conv2d(tape_, layers.convolution_name, x, layers.convolution);
    return batch_norm(tape_, layers.norm_name, packed(layers.convolution_name + ".spoken", y), layers.norm);
  }

  /// As convolve_padded, for frames without padding.
  [[nodiscard]] TensorRef convolve(TensorRef x, const NormalisedConvolution& layers) const {
    const bool over_time = layers.convolution.weight.master.extent(0) > 1;
    if (!over_time) return halfscope::convolve(tape_, x, layers);
    const std::int64_t channels = tape_.value(x).shape().back();
    const Shape shape{lengths_.batch(), lengths_.time, 1, channels};
    x = take_rows(tape_, layers.convolution_name + ".padded", x,
                  {padded_, channels, shape, AbsentRows::zeros});
    return convolve_padded(x, layers);
  }

  [[nodiscard]] TensorRef activate(TensorRef x, const std::string& name) const {
    return dropout(tape_, name + ".dropout", relu(tape_, name + ".relu", x), dropout_);
  }

  [[nodiscard]] TensorRef apply(TensorRef x, const Block& block, const std::vector<TensorRef>& before) const {
    for (const NormalisedConvolution& layers : block.convolutions) {
      x = convolve(x, layers);
      if (&layers != &block.convolutions.back()) x = activate(x, layers.convolution_name);
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
      const NormalisedConvolution& residual = block.residuals[i];
      x = add_residual(tape_, residual.convolution_name + ".sum", x, convolve(before[i], residual));
    }
    return activate(x, block.name);
  }

  /// (time, batch, labels), with zeros in padding.
  [[nodiscard]] TensorRef logits(TensorRef x, const LinearParameters& output) const {
    const TensorRef y = linear(tape_, "output", x, output);
    const std::int64_t labels = tape_.value(y).shape().back();
    const Shape shape{lengths_.time, lengths_.batch(), labels};
    return take_rows(tape_, "logits", y, {padded_rows(OuterAxis::time), labels, shape, AbsentRows::zeros});
  }

 private:
  [[nodiscard]] std::vector<std::int32_t> padded_rows(OuterAxis outer) const {
    return spoken_rows(lengths_, outer, [&](std::int64_t t, std::int64_t b) {
      return firsts_[static_cast<std::size_t>(b)] + t;
    });
  }

  [[nodiscard]] TensorRef packed(const std::string& name, TensorRef x) const {
    const std::int64_t channels = tape_.value(x).shape().back();
    return take_rows(tape_, name, x, {kept_, channels, {1, std::ssize(kept_), 1, channels}});
  }

  Tape& tape_;
  const Lengths& lengths_;
  float dropout_;
  std::vector<std::int32_t> firsts_;         // an utterance's first frame among those without padding
  std::vector<std::int32_t> kept_, padded_;  // rows of the one among the other
};

struct Jasper {
  NormalisedConvolution first, wide, last;
  std::vector<Block> blocks;
  LinearParameters output;
  float dropout;

  [[nodiscard]] BatchOutcome run(Tape& tape, const Batch& batch) const {
    const Lengths lengths = lengths_of("jasper", batch, time_stride);
    Array inputs = batch.inputs.to(active_device());
    inputs.reshape({inputs.extent(0), inputs.extent(1), 1, inputs.extent(2)});
    const Frames frames(tape, lengths, dropout);
    TensorRef x = frames.activate(frames.convolve_padded(tape.input("features", std::move(inputs)), first),
                                  first.convolution_name);
    std::vector<TensorRef> before;
    for (const Block& block : blocks) {
      before.push_back(x);
      x = frames.apply(x, block, before);
    }
    for (const NormalisedConvolution* layers : {&wide, &last})
      x = frames.activate(frames.convolve(x, *layers), layers->convolution_name);
    const TensorRef logits = frames.logits(x, output);
    return {ctc_loss(tape, "loss", logits, {lengths.steps, batch.label_counts, batch.labels}), {logits}};
  }
};

Jasper add_layers(ParameterStore& store, const ModelSpec& spec) {
  const Builder builder(store, spec);
  NormalisedConvolution first = builder.add("conv1", spec.example_shape[1], first_filter, time_stride);
  std::vector<Block> blocks;
  std::vector<std::int64_t> outputs{builder.channels(first_filter)};
  for (const Filter& filter : block_filters) {
    Block& block = blocks.emplace_back(Block{fmt::format("block{}", blocks.size() + 1), {}, {}});
    std::int64_t in = outputs.back();
    for (std::int64_t i = 1; i <= repeats; ++i) {
      block.convolutions.push_back(builder.add(fmt::format("{}.conv{}", block.name, i), in, filter));
      in = builder.channels(filter);
    }
    for (const std::int64_t output : outputs) {
      const std::string name = fmt::format("{}.residual{}", block.name, block.residuals.size() + 1);
      block.residuals.push_back(builder.add(name, output, {1, filter.channels}));
    }
    outputs.push_back(in);
  }
  NormalisedConvolution wide = builder.add("conv2", outputs.back(), wide_filter),
                        last = builder.add("conv3", builder.channels(wide_filter), last_filter);
  const LinearParameters output = builder.add_output(builder.channels(last_filter));
  return {std::move(first),  std::move(wide), std::move(last),
          std::move(blocks), output,          spec.fp32(dropout_option)};
}

}  // namespace
}  // namespace jasper

namespace {

Model make_jasper(const ModelSpec& spec) {
  using namespace jasper;
  check_speech("jasper", spec);
  Model model{std::make_unique<ParameterStore>(), nullptr,
              [] { return make_character_error_rate(time_stride); }};
  model.forward = [layers = add_layers(*model.store, spec)](Tape& tape, const Batch& batch) {
    return layers.run(tape, batch);
  };
  return model;
}

}  // namespace

constexpr ModelKind jasper_kind{
    make_jasper, {with_default(width_option, 0.0625), dropout_option, batch_norm_epsilon_option}};

}  // namespace halfscope
