// Models that translate: their sizes, sentences that do not depend on their batch, and that they learn.
#include <algorithm>
#include <cmath>

#include "sim/models/models.hpp"
#include "sim/models/parts/transformer_block.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/own_options.hpp"
#include "tests/sim/reversals.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::translation_models_test {
namespace {

const auto make_models = {seq2seq_attention_kind.make, transformer_kind.make};

std::size_t weights_of(const Model& model) {
  std::size_t count = 0;
  for (const Parameter& parameter : model.store->parameters) count += parameter.master.size();
  return count;
}

/// The logits of a batch in an evaluation.
Array logits_of(const Model& model, const Batch& batch, const PrecisionPolicy& policy) {
  TrackerList none;
  Caster caster(policy, 0, none);
  Tape tape(caster, Phase::evaluation);
  return tape.value(model.forward(tape, batch).predictions[0]).clone();
}

TEST_CASE("the transformer has the published number of weights", "[translation]") {
  // The base model of Vaswani et al., table 3, with two embeddings and an output of their own in place of one
  // matrix for all three: 65 million there, with 37,000 tokens.
  constexpr std::size_t width = 512, hidden = 2048, words = 37'000;
  const Model model = transformer_kind.make(
      {.example_shape = {50, 50},
       .class_count = words,
       .token_count = words,
       .options = {{"embedding_size", width}, {"hidden_size", hidden}, {"layers", 6}, {"heads", 8}},
       .initial = InitialWeights::unset});
  const std::size_t norm = 2 * width, attention = 4 * (width + 1) * width + norm,
                    feed_forward = (width + 1) * hidden + (hidden + 1) * width + norm,
                    layers = 6 * (attention + feed_forward) + 6 * (2 * attention + feed_forward) + 2 * norm;
  CHECK(layers == 44'140'544);
  CHECK(weights_of(model) == layers + 3 * words * width + words);
  CHECK(weights_of(model) - 2 * words * width - words == 63'084'544);
}

TEST_CASE("encoder and decoder of LSTMs have as many weights as their layers add up to", "[translation]") {
  // GNMT's width, depth and word pieces (Wu et al., 2016, section 3).
  constexpr std::size_t width = 1024, words = 32'000, depth = 8;
  const Model model = seq2seq_attention_kind.make(
      {.example_shape = {50, 50},
       .class_count = words,
       .token_count = words,
       .options = {{"embedding_size", width}, {"hidden_size", width}, {"layers", depth}},
       .initial = InitialWeights::unset});
  const std::size_t lstm = 2 * (width + 1) * 4 * width, attention = (width + 1 + 2 * width + 1) * width;
  CHECK(weights_of(model) == 2 * depth * lstm + attention + 3 * words * width + words);
  CHECK(weights_of(model) == 235'832'576);
}

TEST_CASE("no sentence depends on those beside it in the batch", "[translation]") {
  const auto pairs = reversals();
  const std::vector<std::int64_t> both{0, pairs->size(Split::train) - 1};
  for (const auto make : make_models) {
    const Model model = make({.example_shape = pairs->example_shape(),
                              .class_count = pairs->class_count(),
                              .token_count = pairs->token_count(),
                              .options = {{"embedding_size", 8}, {"hidden_size", 12}, {"heads", 2}}});
    for (const PrecisionPolicy& policy : {fp32_policy(), fp16_mixed_policy()}) {
      const Array together = logits_of(model, pairs->batch(Split::train, both), policy);
      std::vector<float> apart;
      for (const std::int64_t index : both) {
        const Array alone = logits_of(model, pairs->batch(Split::train, std::vector{index}), policy);
        apart.insert(apart.end(), alone.values().begin(), alone.values().end());
      }
      CHECK(std::ranges::equal(together.values(), apart));
    }
  }
}

TEST_CASE("a decoder does not see the words that it is to predict", "[translation]") {
  const auto pairs = reversals();
  const auto longest = [&] { return pairs->batch(Split::train, std::vector{pairs->size(Split::train) - 1}); };
  for (const auto make : make_models) {
    const Model model = make({.example_shape = pairs->example_shape(),
                              .class_count = pairs->class_count(),
                              .token_count = pairs->token_count(),
                              .options = {{"embedding_size", 8}, {"hidden_size", 12}}});
    const Array before = logits_of(model, longest(), fp32_policy());
    Batch other = longest();
    other.decoder_tokens.back() = other.decoder_tokens.back() == 4 ? 5 : 4;
    const Array after = logits_of(model, other, fp32_policy());
    const std::size_t classes = static_cast<std::size_t>(pairs->class_count()),
                      earlier = before.size() - classes;
    CHECK(std::ranges::equal(before.values().first(earlier), after.values().first(earlier)));
    CHECK_FALSE(std::ranges::equal(before.values().last(classes), after.values().last(classes)));
  }
}

TEST_CASE("LSTMs have a shortcut around them from the third on", "[translation]") {
  const auto pairs = reversals();
  const Model model =
      seq2seq_attention_kind.make({.example_shape = pairs->example_shape(),
                                   .class_count = pairs->class_count(),
                                   .token_count = pairs->token_count(),
                                   .options = {{"embedding_size", 8}, {"hidden_size", 12}, {"layers", 4}}});
  TrackerList none;
  Caster caster({}, 0, none);
  Tape tape(caster, Phase::training);
  (void)model.forward(tape, pairs->batch(Split::train, std::vector<std::int64_t>{0}));
  std::vector<std::string> sums;
  for (const TapeEntry& entry : tape.entries())
    if (entry.kind() == OperationKind::residual_sum) sums.emplace_back(entry.name);
  CHECK(sums == std::vector<std::string>{"encoder3.sum", "encoder4.sum", "decoder3.sum", "decoder4.sum"});
}

TrainConfig config_of(const std::string& model, const std::string& policy) {
  return {.model = model,
          .model_options =
              own_options(model, {{"embedding_size", 32}, {"hidden_size", 48}, {"layers", 1}, {"heads", 2}}),
          .steps = 400,
          .batch = 32,
          .learning_rate = 0.01,
          .warmup_steps = 10,
          .clip_norm = 1,
          .policy = policy,
          .loss_scale = policy == "fp32" ? "none" : "1024"};
}

Evaluation trained(const TrainConfig& config, const Dataset& dataset) {
  Trainer trainer(config, dataset);
  for (std::int64_t i = 0; i < config.steps; ++i) (void)trainer.step();
  return trainer.evaluate();
}

TEST_CASE("translators learn to turn sentences around, in FP32 and in FP16", "[translation][long]") {
  const auto pairs = reversals();
  for (const char* model : {"seq2seq_attention", "transformer"}) {
    for (const char* policy : {"fp32", "fp16_mixed"}) {
      INFO(model << ", " << policy);
      const TrainConfig config = config_of(model, policy);
      const Evaluation before = Trainer(config, *pairs).evaluate(), after = trained(config, *pairs);
      CHECK(before.metric > 6);
      CHECK(after.metric < 1.2);
      CHECK(after.metric == Approx(std::exp(after.loss)).epsilon(1e-4));
    }
  }
}

TEST_CASE("a translator's bits do not depend on the threads", "[translation]") {
  const auto pairs = reversals();
  for (const char* model : {"seq2seq_attention", "transformer"}) {
    TrainConfig config = config_of(model, "fp16_mixed");
    config.steps = 5;
    config.model_options["dropout"] = 0.2;
    config.roles.activation = "fp16/stochastic";
    const double one = trained(config, *pairs).loss;
    CHECK(one == with_threads(2, [&] { return trained(config, *pairs).loss; }));
  }
}

TEST_CASE("a translator wants sentence pairs", "[translation]") {
  const SmallDataset images;
  for (const char* model : {"seq2seq_attention", "transformer"}) {
    check_says(message_of<InvalidArgument>([&] { Trainer(config_of(model, "fp32"), images); }),
               {model, "(source, target)", "(8, 8, 1)", "sentence pairs"});
  }
}

TEST_CASE("positions are the sines and cosines of the paper", "[translation]") {
  const Array positions = sinusoids({2, 4, 6}, 0.5f);
  for (std::size_t row = 0; row < 8; ++row) {
    const double place = static_cast<double>(row % 4);
    for (std::size_t pair = 0; pair < 3; ++pair) {
      const double angle = place * std::exp(-std::log(1e4) * static_cast<double>(pair) / 3);
      CHECK(positions[row * 6 + 2 * pair] == Approx(0.5 * std::sin(angle)).margin(1e-7));
      CHECK(positions[row * 6 + 2 * pair + 1] == Approx(0.5 * std::cos(angle)).margin(1e-7));
    }
  }
}

}  // namespace
}  // namespace halfscope::translation_models_test
