// Makes and runs the head of a masked language model.
#include "sim/models/parts/masked_words.hpp"

#include <fmt/format.h>

#include "sim/models/parts/bert_encoder.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/model_options.hpp"

namespace halfscope {
namespace {

[[noreturn]] void refuse(std::string_view model) {
  throw InvalidArgument(
      fmt::format("model {} learns masked words or a class of each text: choose the data set masked_verses "
                  "or verse_genre",
                  model));
}

}  // namespace

MaskedWordsHead add_masked_words_head(ParameterStore& store, const ModelSpec& model, Parameter& words) {
  const LinearParameters dense =
      add_bert_matrix(store, model, "masked_words.dense", model.whole(embedding_size_option));
  const LayerNormParameters norm = add_bert_norm(store, model, "masked_words.norm");
  Parameter& bias = store.add("masked_words.bias", constant_weights({model.token_count}, 0));
  return {dense, norm, {words, bias}};
}

TensorRef masked_word_logits(Tape& tape, const MaskedWordsHead& head, TensorRef states, const Batch& batch) {
  const std::int64_t width = tape.value(states).shape().back();
  TensorRef x = take_rows(tape, "masked_words.states", states, {batch.masked, width});
  x = gelu(tape, "masked_words.gelu", linear(tape, "masked_words.dense", x, head.dense));
  x = layer_norm(tape, "masked_words.norm", x, head.norm);
  return linear_transposed(tape, "masked_words", x, head.words);
}

void check_verses(std::string_view model, const ModelSpec& spec) {
  if (spec.example_shape.size() != 1 || spec.text_labels == TextLabels::next_words) refuse(model);
}

void check_verses(std::string_view model, const Batch& batch) {
  const std::size_t examples = batch.lengths.size();
  const bool classes = batch.masked.empty() && batch.labels.size() == examples;
  const bool words = batch.masked.size() == batch.labels.size() && batch.follows.size() == examples;
  if (examples == 0 || !(classes || words)) refuse(model);
}

}  // namespace halfscope
