// Builds the recurrent language models.
#include "sim/models/models.hpp"

#include <cmath>

#include "sim/layers/layers.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/perplexity.hpp"
#include "sim/models/parts/texts.hpp"

namespace halfscope {
namespace language_model {
namespace {

/// Standard deviations of the initial weights.
constexpr float embedding_deviation = 0.1f, output_deviation = 0.05f;

using RecurrentLayer = TensorRef (*)(Tape&, const std::string&, TensorRef, const RecurrentParameters&);

/// Recurrent layer of a language model; all else is the same.
struct Cell {
  std::string name;
  RecurrentLayer layer;
  std::int64_t gates;
};

RecurrentParameters add_cell(ParameterStore& store, const ModelSpec& spec, const Cell& cell) {
  const float bound = 1.0f / std::sqrt(static_cast<float>(spec.whole(hidden_size_option)));
  const std::int64_t width = cell.gates * spec.whole(hidden_size_option);
  const auto add = [&](const std::string& part, Shape shape) -> Parameter& {
    const std::string name = cell.name + "." + part;
    return store.add(name, uniform_weights(std::move(shape), bound, spec.seed, name));
  };
  Parameter& input_weight = add("input_weight", {spec.whole(embedding_size_option), width});
  Parameter& input_bias = add("input_bias", {width});
  Parameter& hidden_weight = add("hidden_weight", {spec.whole(hidden_size_option), width});
  return {input_weight, input_bias, hidden_weight, add("hidden_bias", {width})};
}

Model make(const ModelSpec& spec, const Cell& cell) {
  check_text(cell.name + "_lm", spec);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_perplexity};
  ParameterStore& store = *model.store;
  const std::int64_t vocabulary = spec.class_count, hidden = spec.whole(hidden_size_option),
                     width = spec.whole(embedding_size_option);
  Parameter& table = store.add(
      "embedding", normal_weights({vocabulary, width}, embedding_deviation, spec.seed, "embedding"));
  const RecurrentParameters recurrent = add_cell(store, spec, cell);
  Parameter& weight = store.add(
      "output.weight", normal_weights({hidden, vocabulary}, output_deviation, spec.seed, "output.weight"));
  const LinearParameters output{weight, store.add("output.bias", constant_weights({vocabulary}, 0))};
  const std::int64_t time = spec.example_shape[0];

  model.forward = [&table, recurrent, output, cell, time, rate = spec.fp32(dropout_option)](
                      Tape& tape, const Batch& batch) {
    const auto steps = static_cast<std::size_t>(time);
    const auto tokens = time_major(batch.tokens, steps), labels = time_major(batch.labels, steps);
    const std::int64_t examples = static_cast<std::int64_t>(tokens.size()) / time;
    TensorRef x = embedding(tape, "embedded", {tokens, {time, examples}}, table);
    x = dropout(tape, "dropout1", x, rate);
    x = cell.layer(tape, cell.name, x, recurrent);
    x = dropout(tape, "dropout2", x, rate);
    const TensorRef logits = linear(tape, "output", x, output);
    return BatchOutcome{softmax_cross_entropy(tape, "loss", logits, labels), {logits}};
  };
  return model;
}

}  // namespace
}  // namespace language_model

namespace {

Model make_rnn_lm(const ModelSpec& spec) {
  return language_model::make(spec, {"rnn", rnn, 1});
}

Model make_gru_lm(const ModelSpec& spec) {
  return language_model::make(spec, {"gru", gru, 3});
}

Model make_lstm_lm(const ModelSpec& spec) {
  return language_model::make(spec, {"lstm", lstm, 4});
}

}  // namespace

constexpr ModelKind rnn_lm_kind{make_rnn_lm, {embedding_size_option, hidden_size_option, dropout_option}};
constexpr ModelKind gru_lm_kind{make_gru_lm, {embedding_size_option, hidden_size_option, dropout_option}};
constexpr ModelKind lstm_lm_kind{make_lstm_lm, {embedding_size_option, hidden_size_option, dropout_option}};

}  // namespace halfscope
