// Makes and runs the encoder of BERT.
#include "sim/models/parts/bert_encoder.hpp"

#include <cmath>
#include <memory>

#include "sim/models/parts/chain.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/model_options.hpp"

namespace halfscope {
namespace {

constexpr float published_deviation = 0.02f, published_width = 768, norm_epsilon = 1e-12f;

Parameter& add_table(ParameterStore& store, const ModelSpec& model, const std::string& name,
                     std::int64_t rows) {
  return store.add(
      name, layer_weights(model, {rows, model.whole(embedding_size_option)}, bert_deviation(model), name));
}

BertLayer add_layer(ParameterStore& store, const ModelSpec& model, const std::string& name) {
  const std::int64_t width = model.whole(embedding_size_option);
  const float deviation = bert_deviation(model);
  MultiHeadAttention self = add_attention(store, model, {name + ".self", width, deviation});
  const LayerNormParameters self_norm = add_bert_norm(store, model, name + ".self.norm");
  FeedForward network = add_feed_forward(
      store, model, {name + ".feed_forward", width, model.whole(hidden_size_option), deviation});
  return {.name = name,
          .self = std::move(self),
          .self_norm = self_norm,
          .feed_forward = std::move(network),
          .feed_forward_norm = add_bert_norm(store, model, name + ".feed_forward.norm")};
}

struct BertSum {
  TensorRef x;
  const LayerNormParameters& norm;
  float dropout;
};
/// norm(dropout(part) + x), whose name is that of the part.
TensorRef normalised_sum(Tape& tape, const std::string& name, TensorRef part, const BertSum& sum) {
  part = dropout(tape, name + ".dropout", part, sum.dropout);
  return layer_norm(tape, name + ".norm", add_residual(tape, name + ".sum", part, sum.x), sum.norm);
}

TensorRef apply(Tape& tape, TensorRef x, const BertLayer& layer, const Array& mask, float dropped) {
  x = normalised_sum(tape, layer.self.name, attend(tape, layer.self, x, x, mask),
                     {x, layer.self_norm, dropped});
  const TensorRef fed = feed_forward(tape, layer.feed_forward, x, FeedForwardActivation::gelu);
  return normalised_sum(tape, layer.feed_forward.name, fed, {x, layer.feed_forward_norm, dropped});
}

/// One forward pass of a batch.
class EncoderPass {
 public:
  EncoderPass(Tape& tape, const BertEncoder& encoder, const Batch& batch)
      : tape_(tape),
        encoder_(encoder),
        batch_(batch),
        examples_(std::ssize(batch.lengths)),
        time_(std::ssize(batch.tokens) / examples_) {}

  TensorRef run() {
    TensorRef x = embedded();
    const auto mask =
        std::make_shared<const Array>(attention_mask({.keys = batch_.lengths,
                                                      .heads = encoder_.layers.front().self.heads,
                                                      .longest_query = time_,
                                                      .longest_key = time_}));
    std::vector<ChainBlock> layers;
    for (const BertLayer& layer : encoder_.layers) {
      layers.push_back({[mask, &layer, dropped = encoder_.dropout](Tape& tape, TensorRef in) {
        return apply(tape, in, layer, *mask, dropped);
      }});
    }
    return chain(tape_, x, layers);
  }

 private:
  TensorRef rows_of(Parameter& table, const std::vector<std::int32_t>& tokens) {
    return embedding(tape_, table.name + ".rows", {tokens, {examples_, time_}}, table);
  }
  TensorRef embedded() {
    std::vector<std::int32_t> positions;
    for (std::int64_t i = 0; i < examples_ * time_; ++i)
      positions.push_back(static_cast<std::int32_t>(i % time_));
    TensorRef x = add_residual(tape_, "embeddings.sum", rows_of(encoder_.words, batch_.tokens),
                               rows_of(encoder_.positions, positions));
    if (encoder_.segments != nullptr) {
      std::vector<std::int32_t> segments = batch_.segments;
      segments.resize(batch_.tokens.size(), 0);
      x = add_residual(tape_, "embeddings.sum2", x, rows_of(*encoder_.segments, segments));
    }
    x = layer_norm(tape_, "embeddings.norm", x, encoder_.norm);
    return dropout(tape_, "embeddings.dropout", x, encoder_.dropout);
  }
  Tape& tape_;
  const BertEncoder& encoder_;
  const Batch& batch_;
  std::int64_t examples_, time_;
};

}  // namespace

float bert_deviation(const ModelSpec& model) {
  return published_deviation *
         std::sqrt(published_width / static_cast<float>(model.whole(embedding_size_option)));
}

LayerNormParameters add_bert_norm(ParameterStore& store, const ModelSpec& model, const std::string& name) {
  return add_layer_norm(store, name, model.whole(embedding_size_option), norm_epsilon);
}

LinearParameters add_bert_matrix(ParameterStore& store, const ModelSpec& model, const std::string& name,
                                 std::int64_t out) {
  const std::string weight = name + ".weight";
  Parameter& w = store.add(
      weight, layer_weights(model, {model.whole(embedding_size_option), out}, bert_deviation(model), weight));
  return {w, store.add(name + ".bias", constant_weights({out}, 0))};
}

BertEncoder add_bert_encoder(ParameterStore& store, const ModelSpec& model, Segments segments) {
  Parameter& words = add_table(store, model, "embeddings.words", model.token_count);
  Parameter& positions = add_table(store, model, "embeddings.positions", model.example_shape[0]);
  Parameter* const sentences =
      segments == Segments::embedded ? &add_table(store, model, "embeddings.segments", 2) : nullptr;
  BertEncoder encoder{.words = words,
                      .positions = positions,
                      .segments = sentences,
                      .norm = add_bert_norm(store, model, "embeddings.norm"),
                      .layers = {},
                      .dropout = model.fp32(dropout_option)};
  for (std::int64_t i = 1; i <= model.whole(layers_option); ++i)
    encoder.layers.push_back(add_layer(store, model, "encoder" + std::to_string(i)));
  return encoder;
}

TensorRef bert_states(Tape& tape, const BertEncoder& encoder, const Batch& batch) {
  return EncoderPass(tape, encoder, batch).run();
}

TensorRef first_states(Tape& tape, const std::string& name, TensorRef states) {
  const Shape shape = tape.value(states).shape();
  std::vector<std::int32_t> rows;
  for (std::int64_t b = 0; b < shape[0]; ++b) rows.push_back(static_cast<std::int32_t>(b * shape[1]));
  return take_rows(tape, name, states, {rows, shape[2]});
}

}  // namespace halfscope
