// The encoder of BERT: embeddings and layers that normalise behind each sum.
#pragma once

#include <string>
#include <vector>

#include "sim/models/parts/multi_head_attention.hpp"
#include "sim/models/parts/transformer_block.hpp"

namespace halfscope {

struct BertLayer {
  std::string name;
  MultiHeadAttention self;
  LayerNormParameters self_norm;
  FeedForward feed_forward;
  LayerNormParameters feed_forward_norm;
};

struct BertEncoder {
  Parameter &words, &positions;
  Parameter* segments = nullptr;  ///< null of DistilBERT
  LayerNormParameters norm;
  std::vector<BertLayer> layers;
  float dropout = 0;
};

/// Whether sentences have embeddings of their own.
enum class Segments : std::uint8_t { embedded, ignored };

/// Standard deviation of all weights: 0.02 at the published width of 768, and what keeps the variance of
/// sums over any other.
[[nodiscard]] float bert_deviation(const ModelSpec& model);
/// LayerNorm's epsilon, 1e-12.
[[nodiscard]] LayerNormParameters add_bert_norm(ParameterStore& store, const ModelSpec& model,
                                                const std::string& name);
/// NAME.weight (embedding_size, out) and NAME.bias.
[[nodiscard]] LinearParameters add_bert_matrix(ParameterStore& store, const ModelSpec& model,
                                               const std::string& name, std::int64_t out);

/// Adds embeddings of token_count tokens, of as many positions as an example has, and of two segments, and
/// `layers` layers of embedding_size numbers with `heads` heads and feed-forward networks of hidden_size.
/// Throws InvalidArgument unless the heads divide the width.
[[nodiscard]] BertEncoder add_bert_encoder(ParameterStore& store, const ModelSpec& model, Segments segments);

/// (batch, time, embedding_size): the last layer's states of the batch's tokens. No position sees the padding
/// behind its example's length.
TensorRef bert_states(Tape& tape, const BertEncoder& encoder, const Batch& batch);

/// (batch, embedding_size): the states (batch, time, embedding_size) of each example's first position.
TensorRef first_states(Tape& tape, const std::string& name, TensorRef states);

}  // namespace halfscope
