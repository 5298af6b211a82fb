// Multi-head attention (Vaswani et al., NIPS 2017, section 3.2): four matrices around products of heads.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/layers/layers.hpp"
#include "sim/models/model.hpp"

namespace halfscope {

struct MultiHeadAttention {
  std::string name;
  std::int64_t heads = 1;
  float dropout = 0;  ///< dropout of the attention weights
  LinearParameters query, key, value, output;
};

/// Matrices (width, width) of normal weights, and biases of 0.
struct AttentionSpec {
  std::string name;
  std::int64_t width = 1;
  float deviation = 0;  ///< deviation of the initial weights
};
/// Adds NAME.query, .key, .value and .output to `store`, each with .weight and .bias. Heads and dropout are
/// the model's. Throws InvalidArgument unless the model's heads divide the width.
[[nodiscard]] MultiHeadAttention add_attention(ParameterStore& store, const ModelSpec& model,
                                               const AttentionSpec& spec);

/// Whether a position sees those behind it.
enum class Looks : std::uint8_t { everywhere, back };

/// Extents of a batch of sequences: how many positions each has, and which of them see which.
struct AttentionExtents {
  std::span<const std::int32_t> keys;  ///< per example, the positions before the padding, which may be seen
  std::int64_t heads = 1, longest_query = 0, longest_key = 0;
  Looks looks = Looks::everywhere;
};
/// (batch, heads, longest query, longest key) on the active device: 0 of what a query sees, -1e4 of padding
/// and, looking back, of the positions behind its own.
[[nodiscard]] Array attention_mask(const AttentionExtents& extents);

/// y (batch, longest query, width): for each position of `queries` (batch, longest query, width) and each
/// head, the mean of the values of `memory` (batch, longest key, width), weighted by the softmax of query
/// times key; then one matrix. A query is divided by sqrt(width / heads) before the product, so that scores
/// overflow later. Tensors are NAME.scores and NAME.weights (batch, heads, longest query, longest key), and
/// NAME.context, among others.
TensorRef attend(Tape& tape, const MultiHeadAttention& attention, TensorRef queries, TensorRef memory,
                 const Array& mask);

}  // namespace halfscope
