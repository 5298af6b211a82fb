// Builds the transformer that translates.
#include <cmath>
#include <vector>

#include "sim/models/models.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/multi_head_attention.hpp"
#include "sim/models/parts/perplexity.hpp"
#include "sim/models/parts/transformer_block.hpp"
#include "sim/models/parts/translation.hpp"

namespace halfscope {
namespace transformer {
namespace {

/// Standard deviations of the initial weights, and the positions' amplitude beside the embeddings.
constexpr float embedding_deviation = 0.1f, output_deviation = 0.05f, position_amplitude = 0.1f;

/// Parts of a layer: each normalises its input, and adds to the input what it computes.
struct AttentionPart {
  LayerNormParameters norm;
  MultiHeadAttention attention;
};
struct FeedForwardPart {
  LayerNormParameters norm;
  FeedForward network;
};

struct EncoderLayer {
  AttentionPart self;
  FeedForwardPart feed_forward;
};
struct DecoderLayer {
  AttentionPart self, source;
  FeedForwardPart feed_forward;
};

struct Transformer {
  Parameter &source_table, &target_table;
  std::vector<EncoderLayer> encoder;
  LayerNormParameters encoder_norm;
  std::vector<DecoderLayer> decoder;
  LayerNormParameters decoder_norm;
  LinearParameters output;  // weight (width, vocabulary)
  std::int64_t heads = 1;
  float dropout = 0, label_smoothing = 0;
};

/// Adds the parts of a transformer to a store.
class Builder {
 public:
  Builder(ParameterStore& store, const ModelSpec& model) : store_(store), model_(model) {}

  Parameter& table(const char* name, std::int64_t tokens) {
    return store_.add(name, layer_weights(model_, {tokens, model_.whole(embedding_size_option)},
                                          embedding_deviation, name));
  }
  LayerNormParameters norm(const std::string& name) {
    return add_layer_norm(store_, name, model_.whole(embedding_size_option));
  }
  AttentionPart attention(const std::string& name) {
    const LayerNormParameters before = norm(name + ".norm");
    const std::int64_t width = model_.whole(embedding_size_option);
    const float deviation = 1 / std::sqrt(static_cast<float>(width));
    return {before, add_attention(store_, model_, {name, width, deviation})};
  }
  FeedForwardPart feed_forward(const std::string& name) {
    const LayerNormParameters before = norm(name + ".norm");
    return {before,
            add_feed_forward(store_, model_,
                             {name, model_.whole(embedding_size_option), model_.whole(hidden_size_option)})};
  }
  EncoderLayer encoder_layer(const std::string& name) {
    AttentionPart self = attention(name + ".self");
    return {std::move(self), feed_forward(name + ".feed_forward")};
  }
  DecoderLayer decoder_layer(const std::string& name) {
    AttentionPart self = attention(name + ".self"), source = attention(name + ".source");
    return {std::move(self), std::move(source), feed_forward(name + ".feed_forward")};
  }
  LinearParameters output() {
    Parameter& weight = store_.add(
        "output.weight", layer_weights(model_, {model_.whole(embedding_size_option), model_.class_count},
                                       output_deviation, "output.weight"));
    return {weight, store_.add("output.bias", constant_weights({model_.class_count}, 0))};
  }

 private:
  ParameterStore& store_;
  const ModelSpec& model_;
};

std::vector<EncoderLayer> encoder_layers(Builder& builder, std::int64_t count) {
  std::vector<EncoderLayer> layers;
  for (std::int64_t i = 1; i <= count; ++i)
    layers.push_back(builder.encoder_layer("encoder" + std::to_string(i)));
  return layers;
}

std::vector<DecoderLayer> decoder_layers(Builder& builder, std::int64_t count) {
  std::vector<DecoderLayer> layers;
  for (std::int64_t i = 1; i <= count; ++i)
    layers.push_back(builder.decoder_layer("decoder" + std::to_string(i)));
  return layers;
}

Transformer add_parameters(ParameterStore& store, const ModelSpec& spec) {
  Builder builder(store, spec);
  Parameter& source_table = builder.table("source_embedding", spec.token_count);
  Parameter& target_table = builder.table("target_embedding", spec.class_count);
  std::vector<EncoderLayer> encoder = encoder_layers(builder, spec.whole(layers_option));
  const LayerNormParameters encoder_norm = builder.norm("encoder.norm");
  std::vector<DecoderLayer> decoder = decoder_layers(builder, spec.whole(layers_option));
  const LayerNormParameters decoder_norm = builder.norm("decoder.norm");
  return {source_table,
          target_table,
          std::move(encoder),
          encoder_norm,
          std::move(decoder),
          decoder_norm,
          builder.output(),
          spec.whole(heads_option),
          spec.fp32(dropout_option),
          spec.fp32(label_smoothing_option)};
}

/// One forward pass of a batch.
class Pass {
 public:
  Pass(Tape& tape, const Transformer& net, const Batch& batch)
      : tape_(tape), net_(net), batch_(batch), extents_(translation_extents("transformer", batch)) {}

  BatchOutcome run() {
    const TensorRef source = encoded();
    const TensorRef states = decoded(source);
    const std::vector<std::int32_t> places = label_places(extents_, batch_);
    const std::int64_t width = tape_.value(states).shape().back();
    const TensorRef predicting = take_rows(tape_, "predicting", states, {places, width});
    const TensorRef logits = linear(tape_, "output", predicting, net_.output);
    return {softmax_cross_entropy(tape_, "loss", logits, batch_.labels, net_.label_smoothing), {logits}};
  }

 private:
  TensorRef embedded(const std::string& name, const Tokens& tokens, Parameter& table) {
    const TensorRef words = embedding(tape_, name + ".words", tokens, table);
    const TensorRef positions =
        tape_.input(name + ".positions", sinusoids(tape_.value(words).shape(), position_amplitude));
    const TensorRef sum = add_residual(tape_, name, words, positions);
    return dropout(tape_, name + ".dropout", sum, net_.dropout);
  }
  TensorRef add_part(const std::string& name, TensorRef part, TensorRef x) {
    part = dropout(tape_, name + ".dropout", part, net_.dropout);
    return add_residual(tape_, name + ".sum", part, x);
  }
  TensorRef self_attention(const AttentionPart& part, TensorRef x, const Array& mask) {
    const TensorRef normal = layer_norm(tape_, part.attention.name + ".norm", x, part.norm);
    return add_part(part.attention.name, attend(tape_, part.attention, normal, normal, mask), x);
  }
  TensorRef source_attention(const AttentionPart& part, TensorRef x, TensorRef source, const Array& mask) {
    const TensorRef normal = layer_norm(tape_, part.attention.name + ".norm", x, part.norm);
    return add_part(part.attention.name, attend(tape_, part.attention, normal, source, mask), x);
  }
  TensorRef fed_forward(const FeedForwardPart& part, TensorRef x) {
    const TensorRef normal = layer_norm(tape_, part.network.name + ".norm", x, part.norm);
    return add_part(part.network.name, feed_forward(tape_, part.network, normal, FeedForwardActivation::relu),
                    x);
  }
  TensorRef encoded() {
    const Array mask = attention_mask({.keys = batch_.lengths,
                                       .heads = net_.heads,
                                       .longest_query = extents_.source,
                                       .longest_key = extents_.source});
    TensorRef x = embedded("source", {batch_.tokens, {extents_.batch, extents_.source}}, net_.source_table);
    for (const EncoderLayer& layer : net_.encoder)
      x = fed_forward(layer.feed_forward, self_attention(layer.self, x, mask));
    return layer_norm(tape_, "encoder.norm", x, net_.encoder_norm);
  }
  TensorRef decoded(TensorRef source) {
    const Array back = attention_mask({.keys = batch_.label_counts,
                                       .heads = net_.heads,
                                       .longest_query = extents_.target,
                                       .longest_key = extents_.target,
                                       .looks = Looks::back});
    const Array everywhere = attention_mask({.keys = batch_.lengths,
                                             .heads = net_.heads,
                                             .longest_query = extents_.target,
                                             .longest_key = extents_.source});
    TensorRef x =
        embedded("target", {batch_.decoder_tokens, {extents_.batch, extents_.target}}, net_.target_table);
    for (const DecoderLayer& layer : net_.decoder) {
      x = self_attention(layer.self, x, back);
      x = source_attention(layer.source, x, source, everywhere);
      x = fed_forward(layer.feed_forward, x);
    }
    return layer_norm(tape_, "decoder.norm", x, net_.decoder_norm);
  }

  Tape& tape_;
  const Transformer& net_;
  const Batch& batch_;
  TranslationExtents extents_;
};

}  // namespace
}  // namespace transformer

namespace {

Model make_transformer(const ModelSpec& spec) {
  using namespace transformer;
  check_translation("transformer", spec);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_perplexity};
  const auto net = std::make_shared<const Transformer>(add_parameters(*model.store, spec));
  model.forward = [net](Tape& tape, const Batch& batch) { return Pass(tape, *net, batch).run(); };
  return model;
}

}  // namespace

constexpr ModelKind transformer_kind{make_transformer,
                                     {embedding_size_option, hidden_size_option, layers_option, heads_option,
                                      dropout_option, label_smoothing_option}};

}  // namespace halfscope
