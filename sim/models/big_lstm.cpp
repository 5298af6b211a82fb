// Builds the language model of Jozefowicz et al., 2016: LSTMs with projected states and a sampled softmax.
#include "sim/models/models.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/layers/layers.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/perplexity.hpp"
#include "sim/models/parts/texts.hpp"
#include "sim/models/parts/word_sampler.hpp"

namespace halfscope {
namespace big_lstm {
namespace {

/// Standard deviations of the initial weights.
constexpr float embedding_deviation = 0.1f, output_deviation = 0.05f;
/// Sampled words: one of eight, and of a small vocabulary more.
constexpr std::int64_t words_per_sample = 8, fewest_samples = 16;

struct ProjectedLayer {
  std::string name;
  RecurrentParameters parameters;
  Parameter& projection;
};

struct BigLstm {
  Parameter& table;
  std::array<ProjectedLayer, 2> layers;
  Parameter& weight;  // (vocabulary, embedding)
  Parameter& bias;    // (vocabulary, 1)
  WordSampler sampler;
  std::int64_t time = 0;
  float dropout = 0;
};

ProjectedLayer add_layer(ParameterStore& store, const ModelSpec& spec, const std::string& name) {
  const std::int64_t hidden = spec.whole(hidden_size_option), state = spec.whole(embedding_size_option);
  const float bound = 1.0f / std::sqrt(static_cast<float>(hidden));
  const auto add = [&](const std::string& part, Shape shape) -> Parameter& {
    const std::string full = name + "." + part;
    return store.add(full, spec.initial == InitialWeights::drawn
                               ? uniform_weights(std::move(shape), bound, spec.seed, full)
                               : Array(std::move(shape)));
  };
  Parameter& input_weight = add("input_weight", {state, 4 * hidden});
  Parameter& input_bias = add("input_bias", {4 * hidden});
  Parameter& hidden_weight = add("hidden_weight", {state, 4 * hidden});
  Parameter& hidden_bias = add("hidden_bias", {4 * hidden});
  return {name, {input_weight, input_bias, hidden_weight, hidden_bias}, add("projection", {hidden, state})};
}

BigLstm add_parameters(ParameterStore& store, const ModelSpec& spec) {
  const std::int64_t vocabulary = spec.class_count, width = spec.whole(embedding_size_option);
  const auto add = [&](const char* name, float deviation) -> Parameter& {
    return store.add(name, layer_weights(spec, {vocabulary, width}, deviation, name));
  };
  Parameter& table = add("embedding", embedding_deviation);
  const ProjectedLayer first = add_layer(store, spec, "lstm1"), second = add_layer(store, spec, "lstm2");
  Parameter& weight = add("output.weight", output_deviation);
  return {table,
          {first, second},
          weight,
          store.add("output.bias", constant_weights({vocabulary, 1}, 0)),
          WordSampler(vocabulary,
                      std::min(vocabulary - 1, std::max(vocabulary / words_per_sample, fewest_samples))),
          spec.example_shape[0],
          spec.fp32(dropout_option)};
}

TensorRef states_of(Tape& tape, const BigLstm& net, const std::vector<std::int32_t>& tokens) {
  const std::int64_t examples = std::ssize(tokens) / net.time;
  TensorRef x = embedding(tape, "embedded", {tokens, {net.time, examples}}, net.table);
  for (const ProjectedLayer& layer : net.layers) {
    x = dropout(tape, layer.name + ".dropout", x, net.dropout);
    x = projected_lstm(tape, layer.name, x, layer.parameters, layer.projection);
  }
  return dropout(tape, "output.dropout", x, net.dropout);
}

/// Rows of the output's weights and biases for these words.
struct OutputRows {
  TensorRef weights, biases;
};
OutputRows output_rows(Tape& tape, const BigLstm& net, const std::vector<std::int32_t>& words) {
  const Tokens tokens{words, {std::ssize(words)}};
  return {embedding(tape, "output.weights", tokens, net.weight),
          embedding(tape, "output.biases", tokens, net.bias)};
}

/// The loss over the label and the samples.
TensorRef sampled_loss(Tape& tape, const BigLstm& net, TensorRef states,
                       const std::vector<std::int32_t>& labels) {
  const WordSamples samples = net.sampler.draw(tape.random_stream("samples"));
  std::vector<std::int32_t> words = labels;
  words.insert(words.end(), samples.words.begin(), samples.words.end());
  const OutputRows rows = output_rows(tape, net, words);
  std::vector<float> correction;
  for (const std::int32_t word : words)
    correction.push_back(samples.log_expected[static_cast<std::size_t>(word)]);
  const TensorRef logits = sampled_logits(tape, "output", states,
                                          {.weights = rows.weights,
                                           .biases = rows.biases,
                                           .labels = labels,
                                           .samples = samples.words,
                                           .correction = std::move(correction)});
  return softmax_cross_entropy(tape, "loss", logits, std::vector<std::int32_t>(labels.size(), 0));
}

}  // namespace
}  // namespace big_lstm

namespace {

Model make_big_lstm(const ModelSpec& spec) {
  using namespace big_lstm;
  check_text("big_lstm", spec);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_perplexity};
  const auto net = std::make_shared<const BigLstm>(add_parameters(*model.store, spec));
  model.forward = [net](Tape& tape, const Batch& batch) {
    const auto steps = static_cast<std::size_t>(net->time);
    const auto tokens = time_major(batch.tokens, steps), labels = time_major(batch.labels, steps);
    const TensorRef states = states_of(tape, *net, tokens);
    if (tape.phase() == Phase::training) return BatchOutcome{sampled_loss(tape, *net, states, labels)};
    const TensorRef logits = linear_transposed(tape, "output", states, {net->weight, net->bias});
    return BatchOutcome{softmax_cross_entropy(tape, "loss", logits, labels), {logits}};
  };
  return model;
}

}  // namespace

constexpr ModelKind big_lstm_kind{make_big_lstm, {embedding_size_option, hidden_size_option, dropout_option}};

}  // namespace halfscope
