// Word language models: embedding, one recurrent layer, and logits over the vocabulary.
#pragma once

#include "sim/models/model.hpp"

namespace halfscope {

/// Embedding N(0, 0.1), a GRU from a zero state with weights uniform on +-1 / sqrt(hidden_size), output
/// N(0, 0.05) with a bias of its own; dropout, if any, before and after the recurrent layer. Examples are
/// (time) tokens, their labels the next ones; judged by perplexity. Throws InvalidArgument where the data set
/// is no text.
[[nodiscard]] Model make_gru_lm(const ModelSpec& spec);
/// The same with an LSTM.
[[nodiscard]] Model make_lstm_lm(const ModelSpec& spec);

}  // namespace halfscope
