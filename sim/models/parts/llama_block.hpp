// A block of a llama: grouped-query attention with rotary positions and a SwiGLU network, each behind a norm.
#pragma once

#include <cstdint>
#include <string>

#include "sim/layers/layers.hpp"
#include "sim/models/model.hpp"

namespace halfscope {

inline constexpr EntryOption key_value_heads_option{
    "key_value_heads",
    2,
    {1, 1000},
    "heads of keys and values, each for as many queries' heads",
    OptionKind::whole_number};

/// Parameters and constants of a block; matrices are (inputs, outputs), without biases.
struct LlamaBlock {
  std::string name;
  std::int64_t heads = 1, key_value_heads = 1;
  RmsNormParameters attention_norm, network_norm;
  Parameter &query, &key, &value, &output;
  Parameter &gate, &up, &down;
};

/// Adds NAME.attention.norm.gamma, NAME.attention.query.weight, .key, .value and .output,
/// NAME.feed_forward.norm.gamma, NAME.feed_forward.gate.weight, .up and .down. Weights are N(0, 1 / inputs),
/// of output and down divided by sqrt(2 layers) too; the gammas are 1. Throws InvalidArgument unless the
/// heads divide the width into even parts, and the heads of keys and values the heads.
[[nodiscard]] LlamaBlock add_llama_block(ParameterStore& store, const ModelSpec& model,
                                         const std::string& name);

/// Adds NAME.gamma of ones, (width).
[[nodiscard]] RmsNormParameters add_rms_norm(ParameterStore& store, const std::string& name,
                                             std::int64_t width);

/// y (batch, time, width): x + attention(norm(x)), then that + network(norm(that)). `mask` is
/// `attention_mask` of the queries' heads.
TensorRef apply_llama_block(Tape& tape, const LlamaBlock& block, TensorRef x, const Array& mask);

}  // namespace halfscope
