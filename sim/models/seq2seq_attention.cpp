// Builds the encoder and decoder of LSTMs with attention.
#include <cmath>
#include <vector>

#include "sim/models/models.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/multi_head_attention.hpp"
#include "sim/models/parts/perplexity.hpp"
#include "sim/models/parts/texts.hpp"
#include "sim/models/parts/translation.hpp"

namespace halfscope {
namespace seq2seq_attention {
namespace {

/// Standard deviations of the initial weights.
constexpr float embedding_deviation = 0.1f, output_deviation = 0.05f;
/// From the third on, a layer's states are added to its input.
constexpr std::size_t layers_without_shortcut = 2;

struct LstmLayer {
  std::string name;
  RecurrentParameters parameters;
};

struct Seq2Seq {
  Parameter &source_table, &target_table;
  std::vector<LstmLayer> encoder, decoder;
  LinearParameters compare;  // (hidden, hidden): between a state of the decoder and those of the encoder
  LinearParameters combine;  // (2 hidden, hidden)
  LinearParameters output;   // (hidden, vocabulary)
  float dropout = 0, label_smoothing = 0;
};

/// Adds the parts of the network to a store.
class Builder {
 public:
  Builder(ParameterStore& store, const ModelSpec& model) : store_(store), model_(model) {}

  Parameter& normal(const std::string& name, const Shape& shape, float deviation) {
    return store_.add(name, layer_weights(model_, shape, deviation, name));
  }
  Parameter& uniform(const std::string& name, const Shape& shape, std::int64_t inputs) {
    const float bound = 1 / std::sqrt(static_cast<float>(inputs));
    return store_.add(name, model_.initial == InitialWeights::drawn
                                ? uniform_weights(shape, bound, model_.seed, name)
                                : Array(shape));
  }
  std::vector<LstmLayer> lstms(const std::string& name) {
    const std::int64_t hidden = model_.whole(hidden_size_option), gates = 4 * hidden;
    std::vector<LstmLayer> layers;
    for (std::int64_t i = 1; i <= model_.whole(layers_option); ++i) {
      const std::string layer = name + std::to_string(i);
      const std::int64_t in = i == 1 ? model_.whole(embedding_size_option) : hidden;
      Parameter& input_weight = uniform(layer + ".input_weight", {in, gates}, hidden);
      Parameter& input_bias = uniform(layer + ".input_bias", {gates}, hidden);
      Parameter& hidden_weight = uniform(layer + ".hidden_weight", {hidden, gates}, hidden);
      Parameter& hidden_bias = uniform(layer + ".hidden_bias", {gates}, hidden);
      layers.push_back({layer, {input_weight, input_bias, hidden_weight, hidden_bias}});
    }
    return layers;
  }
  Parameter& zeros(const std::string& name, std::int64_t count) {
    return store_.add(name, constant_weights({count}, 0));
  }

 private:
  ParameterStore& store_;
  const ModelSpec& model_;
};

Seq2Seq add_parameters(ParameterStore& store, const ModelSpec& spec) {
  Builder add(store, spec);
  const std::int64_t hidden = spec.whole(hidden_size_option), width = spec.whole(embedding_size_option),
                     words = spec.class_count;
  Parameter& source_table = add.normal("source_embedding", {spec.token_count, width}, embedding_deviation);
  Parameter& target_table = add.normal("target_embedding", {words, width}, embedding_deviation);
  std::vector<LstmLayer> encoder = add.lstms("encoder"), decoder = add.lstms("decoder");
  Parameter& compare = add.uniform("compare.weight", {hidden, hidden}, hidden);
  Parameter& compare_bias = add.zeros("compare.bias", hidden);
  Parameter& combine = add.uniform("combine.weight", {2 * hidden, hidden}, 2 * hidden);
  Parameter& combine_bias = add.zeros("combine.bias", hidden);
  Parameter& output = add.normal("output.weight", {hidden, words}, output_deviation);
  return {source_table,
          target_table,
          std::move(encoder),
          std::move(decoder),
          {compare, compare_bias},
          {combine, combine_bias},
          {output, add.zeros("output.bias", words)},
          spec.fp32(dropout_option),
          spec.fp32(label_smoothing_option)};
}

/// One forward pass of a batch.
class Pass {
 public:
  Pass(Tape& tape, const Seq2Seq& net, const Batch& batch)
      : tape_(tape),
        net_(net),
        batch_(batch),
        extents_(translation_extents("seq2seq_attention", batch)),
        hidden_(net.combine.bias.master.extent(0)) {}

  BatchOutcome run() {
    const TensorRef source =
        states("source", batch_.tokens, extents_.source, {net_.source_table, net_.encoder});
    const TensorRef target =
        states("target", batch_.decoder_tokens, extents_.target, {net_.target_table, net_.decoder});
    const TensorRef x = combined(target, context(target, source));
    const TensorRef logits = linear(tape_, "output", x, net_.output);
    return {softmax_cross_entropy(tape_, "loss", logits, batch_.labels, net_.label_smoothing), {logits}};
  }

 private:
  struct Stack {
    Parameter& table;
    const std::vector<LstmLayer>& layers;
  };
  /// (batch, 1, time, hidden): the states of the last layer.
  TensorRef states(const std::string& name, const std::vector<std::int32_t>& tokens, std::int64_t time,
                   const Stack& stack) {
    const std::vector<std::int32_t> in_time = time_major(tokens, static_cast<std::size_t>(time));
    TensorRef x = embedding(tape_, name + ".words", {in_time, {time, extents_.batch}}, stack.table);
    for (std::size_t i = 0; i < stack.layers.size(); ++i) {
      const LstmLayer& layer = stack.layers[i];
      const TensorRef in = dropout(tape_, layer.name + ".dropout", x, net_.dropout);
      const TensorRef out = lstm(tape_, layer.name, in, layer.parameters);
      x = i < layers_without_shortcut ? out : add_residual(tape_, layer.name + ".sum", out, x);
    }
    std::vector<std::int32_t> rows;
    for (std::int64_t b = 0; b < extents_.batch; ++b)
      for (std::int64_t t = 0; t < time; ++t)
        rows.push_back(static_cast<std::int32_t>(t * extents_.batch + b));
    return take_rows(tape_, name + ".states", x, {rows, hidden_, {extents_.batch, 1, time, hidden_}});
  }
  /// (batch, 1, target, hidden): for each state of the decoder the encoder's, weighted (Luong et al., EMNLP
  /// 2015, "general").
  TensorRef context(TensorRef target, TensorRef source) {
    const Array mask = attention_mask(
        {.keys = batch_.lengths, .longest_query = extents_.target, .longest_key = extents_.source});
    const TensorRef queries = linear(tape_, "compare", target, net_.compare);
    const TensorRef scores = batched_matmul(tape_, "scores", queries, source, Operand::transposed);
    return batched_matmul(tape_, "context", masked_softmax(tape_, "weights", scores, mask), source);
  }
  /// (labels, hidden): of each state that predicts a label, with its context.
  TensorRef combined(TensorRef target, TensorRef context) {
    const std::vector<std::int32_t> places = label_places(extents_, batch_);
    const TensorRef state = take_rows(tape_, "predicting.state", target, {places, hidden_}),
                    seen = take_rows(tape_, "predicting.context", context, {places, hidden_});
    const TensorRef both = concat_channels(tape_, "predicting", seen, state);
    const TensorRef x = tanh(tape_, "combine.tanh", linear(tape_, "combine", both, net_.combine));
    return dropout(tape_, "output.dropout", x, net_.dropout);
  }

  Tape& tape_;
  const Seq2Seq& net_;
  const Batch& batch_;
  TranslationExtents extents_;
  std::int64_t hidden_;
};

}  // namespace
}  // namespace seq2seq_attention

namespace {

Model make_seq2seq_attention(const ModelSpec& spec) {
  using namespace seq2seq_attention;
  check_translation("seq2seq_attention", spec);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_perplexity};
  const auto net = std::make_shared<const Seq2Seq>(add_parameters(*model.store, spec));
  model.forward = [net](Tape& tape, const Batch& batch) { return Pass(tape, *net, batch).run(); };
  return model;
}

}  // namespace

constexpr ModelKind seq2seq_attention_kind{
    make_seq2seq_attention,
    {embedding_size_option, hidden_size_option, layers_option, dropout_option, label_smoothing_option}};

}  // namespace halfscope
