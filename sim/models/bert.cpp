// Builds BERT with the heads of its pre-training, or with that of a classifier.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "sim/models/models.hpp"
#include "sim/models/parts/accuracy.hpp"
#include "sim/models/parts/bert_encoder.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/masked_words.hpp"
#include "sim/models/parts/model_options.hpp"

namespace halfscope {
namespace bert {
namespace {

struct Bert {
  BertEncoder encoder;
  LinearParameters pooler;
  std::optional<MaskedWordsHead> masked_words{};
  std::optional<LinearParameters> next_sentence{}, classifier{};
};

Bert add_parameters(ParameterStore& store, const ModelSpec& spec) {
  BertEncoder encoder = add_bert_encoder(store, spec, Segments::embedded);
  Bert bert{.encoder = std::move(encoder),
            .pooler = add_bert_matrix(store, spec, "pooler", spec.whole(embedding_size_option))};
  if (spec.text_labels == TextLabels::text_class) {
    bert.classifier.emplace(add_bert_matrix(store, spec, "classifier", spec.class_count));
  } else {
    bert.masked_words.emplace(add_masked_words_head(store, spec, bert.encoder.words));
    bert.next_sentence.emplace(add_bert_matrix(store, spec, "next_sentence", 2));
  }
  return bert;
}

/// (batch, embedding_size): tanh of a matrix of the first position's state.
TensorRef pooled(Tape& tape, const Bert& bert, TensorRef states) {
  const TensorRef first = first_states(tape, "pooler.first", states);
  return tanh(tape, "pooler.tanh", linear(tape, "pooler", first, bert.pooler));
}

BatchOutcome forward(Tape& tape, const Bert& bert, const Batch& batch) {
  const TensorRef states = bert_states(tape, bert.encoder, batch);
  const TensorRef summary = pooled(tape, bert, states);
  if (bert.classifier) {
    const TensorRef x = dropout(tape, "classifier.dropout", summary, bert.encoder.dropout);
    const TensorRef logits = linear(tape, "classifier", x, *bert.classifier);
    return {softmax_cross_entropy(tape, "loss", logits, batch.labels), {logits}};
  }
  const TensorRef words = masked_word_logits(tape, *bert.masked_words, states, batch);
  const TensorRef next = linear(tape, "next_sentence", summary, *bert.next_sentence);
  const std::array losses{softmax_cross_entropy(tape, "masked_words.loss", words, batch.labels),
                          softmax_cross_entropy(tape, "next_sentence.loss", next, batch.follows)};
  return {total_loss(tape, "loss", losses), {words}};
}

}  // namespace
}  // namespace bert

namespace {

Model make_bert(const ModelSpec& spec) {
  using namespace bert;
  check_verses("bert", spec);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  const auto bert = std::make_shared<const Bert>(add_parameters(*model.store, spec));
  model.forward = [bert](Tape& tape, const Batch& batch) {
    check_verses("bert", batch);
    return forward(tape, *bert, batch);
  };
  return model;
}

}  // namespace

constexpr ModelKind bert_kind{
    make_bert, {embedding_size_option, hidden_size_option, layers_option, heads_option, dropout_option}};

}  // namespace halfscope
