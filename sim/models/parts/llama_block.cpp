// Makes and runs the blocks of a llama.
#include "sim/models/parts/llama_block.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sim/models/parts/heads.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/model_options.hpp"

namespace halfscope {
namespace {

constexpr float rotary_base = 1e4f;

/// Extents of a block's matrices.
struct BlockExtents {
  std::int64_t width, hidden, heads, key_value_heads;
  /// Channels of all heads of keys, and of values.
  [[nodiscard]] std::int64_t key_value_width() const { return width / heads * key_value_heads; }
};

BlockExtents block_extents(const ModelSpec& model) {
  const BlockExtents e{model.whole(embedding_size_option), model.whole(hidden_size_option),
                       model.whole(heads_option), model.whole(key_value_heads_option)};
  if (e.width % (2 * e.heads) != 0) {
    throw InvalidArgument(
        fmt::format("embedding_size = {} is no multiple of 2 heads = {}: rotary positions turn "
                    "pairs of a head's channels",
                    e.width, 2 * e.heads));
  }
  if (e.heads % e.key_value_heads != 0) {
    throw InvalidArgument(
        fmt::format("heads = {} is no multiple of key_value_heads = {}", e.heads, e.key_value_heads));
  }
  return e;
}

/// Adds matrices of normal weights.
class MatrixBuilder {
 public:
  MatrixBuilder(ParameterStore& store, const ModelSpec& model) : store_(store), model_(model) {}

  Parameter& matrix(const std::string& name, std::int64_t in, std::int64_t out, float gain = 1) {
    const std::string weight = name + ".weight";
    const float deviation = gain / std::sqrt(static_cast<float>(in));
    return store_.add(weight, layer_weights(model_, {in, out}, deviation, weight));
  }

 private:
  ParameterStore& store_;
  const ModelSpec& model_;
};

/// Keys or values (batch, heads, time, part) for every query's head.
TensorRef for_all_heads(Tape& tape, const LlamaBlock& block, const std::string& name, TensorRef heads) {
  if (block.key_value_heads == block.heads) return heads;
  return repeat_heads(tape, name + ".repeated", heads, block.heads);
}

TensorRef attended(Tape& tape, const LlamaBlock& block, TensorRef x, const Array& mask) {
  const std::string name = block.name + ".attention";
  const auto heads_of = [&](const std::string& part, Parameter& weight, std::int64_t heads) {
    return split_heads(tape, part + ".heads", linear(tape, part, x, weight), heads);
  };
  TensorRef q = heads_of(name + ".query", block.query, block.heads);
  q = rotary(tape, name + ".query.turned", q, rotary_base);
  const float part = static_cast<float>(tape.value(q).shape().back());
  q = scaled(tape, name + ".query.scaled", q, 1 / std::sqrt(part));
  TensorRef k = heads_of(name + ".key", block.key, block.key_value_heads);
  k = for_all_heads(tape, block, name + ".key", rotary(tape, name + ".key.turned", k, rotary_base));
  TensorRef v = heads_of(name + ".value", block.value, block.key_value_heads);
  v = for_all_heads(tape, block, name + ".value", v);
  const TensorRef scores = batched_matmul(tape, name + ".scores", q, k, Operand::transposed);
  const TensorRef weights = masked_softmax(tape, name + ".weights", scores, mask);
  const TensorRef context = batched_matmul(tape, name + ".context", weights, v);
  return linear(tape, name + ".output", join_heads(tape, name + ".context.joined", context), block.output);
}

TensorRef fed_forward(Tape& tape, const LlamaBlock& block, TensorRef x) {
  const std::string name = block.name + ".feed_forward";
  const TensorRef gate = silu(tape, name + ".silu", linear(tape, name + ".gate", x, block.gate));
  const TensorRef up = linear(tape, name + ".up", x, block.up);
  return linear(tape, name + ".down", multiply(tape, name + ".gated", gate, up), block.down);
}

}  // namespace

RmsNormParameters add_rms_norm(ParameterStore& store, const std::string& name, std::int64_t width) {
  return {.gamma = store.add(name + ".gamma", constant_weights({width}, 1))};
}

LlamaBlock add_llama_block(ParameterStore& store, const ModelSpec& model, const std::string& name) {
  const BlockExtents e = block_extents(model);
  const float residual_gain = 1 / std::sqrt(2 * static_cast<float>(model.whole(layers_option)));
  MatrixBuilder builder(store, model);
  const std::string attention = name + ".attention", network = name + ".feed_forward";
  const RmsNormParameters attention_norm = add_rms_norm(store, attention + ".norm", e.width);
  Parameter& query = builder.matrix(attention + ".query", e.width, e.width);
  Parameter& key = builder.matrix(attention + ".key", e.width, e.key_value_width());
  Parameter& value = builder.matrix(attention + ".value", e.width, e.key_value_width());
  Parameter& output = builder.matrix(attention + ".output", e.width, e.width, residual_gain);
  const RmsNormParameters network_norm = add_rms_norm(store, network + ".norm", e.width);
  Parameter& gate = builder.matrix(network + ".gate", e.width, e.hidden);
  Parameter& up = builder.matrix(network + ".up", e.width, e.hidden);
  Parameter& down = builder.matrix(network + ".down", e.hidden, e.width, residual_gain);
  return {.name = name,
          .heads = e.heads,
          .key_value_heads = e.key_value_heads,
          .attention_norm = attention_norm,
          .network_norm = network_norm,
          .query = query,
          .key = key,
          .value = value,
          .output = output,
          .gate = gate,
          .up = up,
          .down = down};
}

TensorRef apply_llama_block(Tape& tape, const LlamaBlock& block, TensorRef x, const Array& mask) {
  const std::string attention = block.name + ".attention", network = block.name + ".feed_forward";
  const TensorRef seen = rms_norm(tape, attention + ".norm", x, block.attention_norm);
  x = add_residual(tape, attention + ".sum", attended(tape, block, seen, mask), x);
  const TensorRef fed = rms_norm(tape, network + ".norm", x, block.network_norm);
  return add_residual(tape, network + ".sum", fed_forward(tape, block, fed), x);
}

}  // namespace halfscope
