// The llama: its published size, words that do not see those behind them, and that it learns.
#include "sim/models/models.hpp"

#include <algorithm>
#include <numeric>

#include "sim/train/trainer.hpp"
#include "tests/sim/few_words.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::llama_test {
namespace {

std::size_t weights_of(std::int64_t vocabulary, const OptionValues& options) {
  const Model model =
      llama_kind.make({.example_shape = {8},
                       .class_count = vocabulary,
                       .token_count = vocabulary,
                       .options = resolve_entry_options({"model", "llama"}, llama_kind.options, options),
                       .initial = InitialWeights::unset});
  return std::accumulate(
      model.store->parameters.begin(), model.store->parameters.end(), std::size_t{0},
      [](std::size_t sum, const Parameter& parameter) { return sum + parameter.master.size(); });
}

TEST_CASE("a llama of 7B has the published number of weights", "[llama]") {
  // 27 GB of weights, of which as many blocks as tell the others' size are made.
  const auto with_layers = [](double layers) {
    return weights_of(32'000, {{"embedding_size", 4096},
                               {"hidden_size", 11'008},
                               {"layers", layers},
                               {"heads", 32},
                               {"key_value_heads", 32}});
  };
  const std::size_t one = with_layers(1), block = with_layers(2) - one;
  CHECK(one + 31 * block == 6'738'415'616);
  // Grouped queries: Llama 3's 8B has 8 heads of keys, a network of 14,336 and 128,256 words.
  const auto grouped = [](double layers) {
    return weights_of(128'256, {{"embedding_size", 4096},
                                {"hidden_size", 14'336},
                                {"layers", layers},
                                {"heads", 32},
                                {"key_value_heads", 8}});
  };
  const std::size_t one_grouped = grouped(1), grouped_block = grouped(2) - one_grouped;
  CHECK(one_grouped + 31 * grouped_block == 8'030'261'248);
}

TEST_CASE("by default a llama has about a million weights", "[llama]") {
  CHECK(weights_of(2048, {}) == 1'078'144);
}

/// The logits of a batch in an evaluation.
std::vector<float> logits_of(const Model& model, const Batch& batch) {
  TrackerList none;
  Caster caster(fp16_mixed_policy(), 0, none);
  Tape tape(caster, Phase::evaluation);
  const Array& logits = tape.value(model.forward(tape, batch).predictions[0]);
  return {logits.values().begin(), logits.values().end()};
}

Model small_llama() {
  return llama_kind.make({.example_shape = {5},
                          .class_count = 20,
                          .options = {{"embedding_size", 16},
                                      {"hidden_size", 12},
                                      {"layers", 2},
                                      {"heads", 2},
                                      {"key_value_heads", 1}}});
}

TEST_CASE("no word of a llama sees those behind it, nor those of another example", "[llama]") {
  const Model model = small_llama();
  const std::vector<std::int64_t> indices{0, 7};
  Batch batch = FewWords{}.batch(Split::train, indices);
  const std::vector<float> before = logits_of(model, batch);
  batch.tokens[3] = (batch.tokens[3] + 1) % 20;  // token 3 of the first example's five
  const std::vector<float> after = logits_of(model, batch);
  constexpr std::size_t vocabulary = 20;
  CHECK(std::equal(before.begin(), before.begin() + 3 * vocabulary, after.begin()));
  for (std::size_t word = 3; word < 5; ++word) {
    INFO("word " << word);
    const auto first = before.begin() + static_cast<std::ptrdiff_t>(word * vocabulary);
    CHECK_FALSE(std::equal(first, first + vocabulary,
                           after.begin() + static_cast<std::ptrdiff_t>(word * vocabulary)));
  }
  CHECK(std::equal(before.begin() + 5 * vocabulary, before.end(), after.begin() + 5 * vocabulary));
}

TEST_CASE("a llama tells the order of words before the last", "[llama]") {
  // Without positions, attention would see the same words.
  const Model model = small_llama();
  Batch batch{.labels = {0, 0, 0, 0, 0}};
  batch.tokens = {1, 2, 3, 4, 5};
  const std::vector<float> in_order = logits_of(model, batch);
  batch.tokens = {3, 2, 1, 4, 5};
  CHECK_FALSE(std::equal(in_order.end() - 20, in_order.end(), logits_of(model, batch).end() - 20));
}

TEST_CASE("a llama learns a text, in FP32 and in FP16", "[llama]") {
  for (const char* policy : {"fp32", "fp16_mixed"}) {
    INFO(policy);
    TrainConfig config{.model = "llama", .steps = 120, .batch = 16, .learning_rate = 1e-2};
    config.model_options = {{"embedding_size", 32}, {"hidden_size", 48}, {"layers", 1}};
    config.policy = policy;
    if (config.policy != "fp32") config.loss_scale = "1024";
    const FewWords words;
    Trainer trainer(config, words);
    const Evaluation before = trainer.evaluate();
    for (std::int64_t i = 0; i < config.steps; ++i) static_cast<void>(trainer.step());
    const Evaluation after = trainer.evaluate();
    CHECK(before.metric > 15);
    CHECK(after.metric < 3);
  }
}

TEST_CASE("heads that do not divide what they cut are named", "[llama]") {
  const auto message = [](const OptionValues& options) {
    return message_of<InvalidArgument>(
        [&] { (void)llama_kind.make({.example_shape = {5}, .class_count = 20, .options = options}); });
  };
  check_says(message({{"embedding_size", 12}, {"heads", 4}}), {"embedding_size = 12", "2 heads = 8"});
  check_says(message({{"heads", 4}, {"key_value_heads", 3}}), {"heads = 4", "key_value_heads = 3"});
  check_says(message_of<InvalidArgument>([] {
               (void)llama_kind.make({.example_shape = {8, 8}, .class_count = 20});
             }),
             {"model llama", "choose a data set of words"});
}

}  // namespace
}  // namespace halfscope::llama_test
