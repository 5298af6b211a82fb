// The head of a masked language model, and what its batches are.
#pragma once

#include <string_view>

#include "sim/layers/layers.hpp"
#include "sim/models/model.hpp"

namespace halfscope {

/// A matrix, GELU and layer norm, then the token embeddings again, and a bias.
struct MaskedWordsHead {
  LinearParameters dense;
  LayerNormParameters norm;
  LinearParameters words;  // weight (vocabulary, embedding_size)
};

/// Adds masked_words.dense, .norm and .bias to `store`; `words` is the table of the embeddings.
[[nodiscard]] MaskedWordsHead add_masked_words_head(ParameterStore& store, const ModelSpec& model,
                                                    Parameter& words);

/// (labels, vocabulary): of the states (batch, time, embedding_size) at the batch's masked places.
TensorRef masked_word_logits(Tape& tape, const MaskedWordsHead& head, TensorRef states, const Batch& batch);

/// Throws InvalidArgument, naming the model, unless the examples are texts with masked words or a class.
void check_verses(std::string_view model, const ModelSpec& spec);
/// Throws InvalidArgument, naming the model, unless the batch's labels are those of such examples.
void check_verses(std::string_view model, const Batch& batch);

}  // namespace halfscope
