// Lets heads of positions attend to each other.
#include "sim/models/parts/multi_head_attention.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sim/models/parts/heads.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/model_options.hpp"

namespace halfscope {
namespace {

constexpr float out_of_sight = -1e4f;

LinearParameters add_square(ParameterStore& store, const ModelSpec& model, const AttentionSpec& spec,
                            const char* part) {
  const std::string name = spec.name + "." + part, weight = name + ".weight";
  Parameter& w = store.add(weight, layer_weights(model, {spec.width, spec.width}, spec.deviation, weight));
  return {w, store.add(name + ".bias", constant_weights({spec.width}, 0))};
}

}  // namespace

MultiHeadAttention add_attention(ParameterStore& store, const ModelSpec& model, const AttentionSpec& spec) {
  if (spec.width % model.whole(heads_option) != 0) {
    throw InvalidArgument(fmt::format("embedding_size = {} is no multiple of heads = {}", spec.width,
                                      model.whole(heads_option)));
  }
  const LinearParameters query = add_square(store, model, spec, "query"),
                         key = add_square(store, model, spec, "key"),
                         value = add_square(store, model, spec, "value");
  return {.name = spec.name,
          .heads = model.whole(heads_option),
          .dropout = model.fp32(dropout_option),
          .query = query,
          .key = key,
          .value = value,
          .output = add_square(store, model, spec, "output")};
}

Array attention_mask(const AttentionExtents& extents) {
  Array mask({std::ssize(extents.keys), extents.heads, extents.longest_query, extents.longest_key},
             Device::cpu);
  float* to = mask.data();
  for (const std::int32_t keys : extents.keys) {
    for (std::int64_t row = 0; row < extents.heads * extents.longest_query; ++row) {
      const std::int64_t query = row % extents.longest_query;
      const std::int64_t seen = extents.looks == Looks::back ? std::min<std::int64_t>(keys, query + 1) : keys;
      for (std::int64_t key = 0; key < extents.longest_key; ++key) *to++ = key < seen ? 0 : out_of_sight;
    }
  }
  return mask.to(active_device());
}

TensorRef attend(Tape& tape, const MultiHeadAttention& attention, TensorRef queries, TensorRef memory,
                 const Array& mask) {
  const std::string& name = attention.name;
  const std::int64_t heads = attention.heads;
  const float part = static_cast<float>(tape.value(queries).shape().back() / heads);
  TensorRef q = linear(tape, name + ".query", queries, attention.query);
  q = scaled(tape, name + ".query.scaled", q, 1 / std::sqrt(part));
  q = split_heads(tape, name + ".query.heads", q, heads);
  TensorRef k = linear(tape, name + ".key", memory, attention.key);
  k = split_heads(tape, name + ".key.heads", k, heads);
  TensorRef v = linear(tape, name + ".value", memory, attention.value);
  v = split_heads(tape, name + ".value.heads", v, heads);
  const TensorRef scores = batched_matmul(tape, name + ".scores", q, k, Operand::transposed);
  TensorRef weights = masked_softmax(tape, name + ".weights", scores, mask);
  weights = dropout(tape, name + ".weights.dropout", weights, attention.dropout);
  TensorRef context = batched_matmul(tape, name + ".context", weights, v);
  context = join_heads(tape, name + ".context.joined", context);
  return linear(tape, name + ".output", context, attention.output);
}

}  // namespace halfscope
