// Builds the llama that predicts the next word.
#include <cmath>
#include <memory>
#include <vector>

#include "sim/models/models.hpp"
#include "sim/models/parts/chain.hpp"
#include "sim/models/parts/initial.hpp"
#include "sim/models/parts/llama_block.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/multi_head_attention.hpp"
#include "sim/models/parts/perplexity.hpp"
#include "sim/models/parts/texts.hpp"

namespace halfscope {
namespace llama {
namespace {

/// Standard deviation of the embeddings over the root of their width.
constexpr float embedding_deviation = 0.02f;

struct Llama {
  Parameter& table;
  std::vector<LlamaBlock> blocks;
  RmsNormParameters norm;
  Parameter& output;  // (width, vocabulary)
  std::int64_t time = 0;
};

Llama add_parameters(ParameterStore& store, const ModelSpec& spec) {
  const std::int64_t width = spec.whole(embedding_size_option), vocabulary = spec.class_count;
  const float root = std::sqrt(static_cast<float>(width));
  Parameter& table = store.add(
      "embedding", layer_weights(spec, {vocabulary, width}, embedding_deviation * root, "embedding"));
  std::vector<LlamaBlock> blocks;
  for (std::int64_t i = 1; i <= spec.whole(layers_option); ++i)
    blocks.push_back(add_llama_block(store, spec, "layer" + std::to_string(i)));
  const RmsNormParameters norm = add_rms_norm(store, "norm", width);
  Parameter& output =
      store.add("output.weight", layer_weights(spec, {width, vocabulary}, 1 / root, "output.weight"));
  return {table, std::move(blocks), norm, output, spec.example_shape[0]};
}

BatchOutcome run(Tape& tape, const Llama& net, const Batch& batch) {
  const std::int64_t examples = std::ssize(batch.tokens) / net.time;
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(examples),
                                          static_cast<std::int32_t>(net.time));
  const auto mask = std::make_shared<const Array>(attention_mask({.keys = lengths,
                                                                  .heads = net.blocks.front().heads,
                                                                  .longest_query = net.time,
                                                                  .longest_key = net.time,
                                                                  .looks = Looks::back}));
  TensorRef x = embedding(tape, "embedded", {batch.tokens, {examples, net.time}}, net.table);
  std::vector<ChainBlock> blocks;
  for (const LlamaBlock& block : net.blocks) {
    blocks.push_back(
        {[mask, &block](Tape& inner, TensorRef in) { return apply_llama_block(inner, block, in, *mask); }});
  }
  x = rms_norm(tape, "norm", chain(tape, x, blocks), net.norm);
  const TensorRef logits = linear(tape, "output", x, net.output);
  return {softmax_cross_entropy(tape, "loss", logits, batch.labels), {logits}};
}

}  // namespace
}  // namespace llama

namespace {

Model make_llama(const ModelSpec& spec) {
  check_text("llama", spec);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_perplexity};
  const auto net = std::make_shared<const llama::Llama>(llama::add_parameters(*model.store, spec));
  model.forward = [net](Tape& tape, const Batch& batch) { return llama::run(tape, *net, batch); };
  return model;
}

}  // namespace

constexpr ModelKind llama_kind{
    make_llama,
    {with_default(embedding_size_option, 128), with_default(hidden_size_option, 352),
     with_default(layers_option, 3), heads_option, key_value_heads_option}};

}  // namespace halfscope
