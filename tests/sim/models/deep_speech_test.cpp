// Deep Speech 2: its size, utterances that do not depend on their batch, its metric, and that it learns.
#include <algorithm>

#include "sim/models/models.hpp"
#include "sim/models/parts/character_error_rate.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/two_words.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::deep_speech_test {
namespace {

Model model_of(std::int64_t hidden, std::int64_t labels) {
  return deep_speech_2_kind.make(
      {.example_shape = {150, 40}, .class_count = labels, .options = {{"hidden_size", hidden}}});
}

TEST_CASE("Deep Speech 2 has as many weights as its layers add up to", "[deep_speech]") {
  const Model model = model_of(96, 17);
  std::size_t count = 0;
  for (const Parameter& parameter : model.store->parameters) count += parameter.master.size();
  const std::size_t convolutions = (25 + 1) * 16 + (25 * 16 + 1) * 16;
  const std::size_t gru = 3 * 96 * (160 + 1 + 96 + 1);
  CHECK(count == convolutions + 2 * gru + (192 + 1) * 17);
  CHECK(count == 158'721);
  check_says(message_of<InvalidArgument>([] {
               static_cast<void>(deep_speech_2_kind.make({.example_shape = {28, 28, 1}, .class_count = 10}));
             }),
             {"model deep_speech_2", "(time, feature)", "(28, 28, 1)"});
}

TEST_CASE("no utterance depends on those beside it in the batch", "[deep_speech]") {
  std::vector<Utterance> train, test;
  for (const std::int64_t frames : {9, 14, 30}) train.push_back(utterance_of({1, 2}, frames, 3));
  test.push_back(utterance_of({1}, 8, 4));
  const auto speech = make_speech(Alphabet{"ab"}, std::move(train), std::move(test));
  const Model model = model_of(8, 3);
  for (const PrecisionPolicy& policy : {fp32_policy(), fp16_mixed_policy()}) {
    const Array together =
        logits_of(model, speech->batch(Split::train, std::vector<std::int64_t>{0, 1, 2}), policy);
    REQUIRE(together.shape() == Shape{15, 3, 3});
    for (std::int64_t b = 0; b < 3; ++b) {
      const Batch one = speech->batch(Split::train, std::vector<std::int64_t>{b});
      const Array alone = logits_of(model, one, policy);
      const std::int64_t steps = (one.lengths[0] + 1) / 2;
      REQUIRE(alone.shape() == Shape{steps, 1, 3});
      for (std::int64_t i = 0; i < 3 * steps; ++i) {
        CHECK(alone[static_cast<std::size_t>(i)] ==
              together[static_cast<std::size_t>(i / 3 * 9 + b * 3 + i % 3)]);
      }
    }
  }
}

TEST_CASE("the second direction hears an utterance from its end", "[deep_speech]") {
  // The last frame reaches the first step through the second direction alone.
  Batch batch = two_words()->batch(Split::train, std::vector<std::int64_t>{39});
  const Model model = model_of(8, 3);
  const Array before = logits_of(model, batch, fp32_policy());
  batch.inputs[batch.inputs.size() - 1] += 5;
  const Array after = logits_of(model, batch, fp32_policy());
  CHECK_FALSE(std::ranges::equal(before.values().first(3), after.values().first(3)));
}

TEST_CASE("edits are counted as Levenshtein counts them", "[deep_speech]") {
  const auto distance = [](const Labels& from, const Labels& to) { return edit_distance(from, to); };
  CHECK(distance({}, {}) == 0);
  CHECK(distance({1, 2, 3}, {}) == 3);
  CHECK(distance({}, {4, 4}) == 2);
  CHECK(distance({1, 2, 3}, {1, 2, 3}) == 0);
  CHECK(distance({11, 9, 20, 20, 5, 14}, {19, 9, 20, 20, 9, 14, 7}) == 3);  // kitten, sitting
  CHECK(distance({1, 2, 3, 4}, {2, 3, 4, 5}) == 2);
}

TEST_CASE("decoding takes runs once and leaves the blank out", "[deep_speech]") {
  const std::vector<std::vector<float>> frames{{0, 2, 1}, {0, 2, 1}, {3, 2, 1},
                                               {0, 2, 1}, {0, 1, 2}, {1, 1, 0}};
  const std::vector<std::span<const float>> logits(frames.begin(), frames.end());
  CHECK(greedy_labels(logits) == Labels{1, 1, 2});
  CHECK(greedy_labels({}).empty());
}

TEST_CASE("Deep Speech 2 learns two words", "[deep_speech]") {
  TrainConfig config;
  config.model = "deep_speech_2";
  config.model_options["hidden_size"] = 16;
  config.steps = 150;
  config.batch = 8;
  config.learning_rate = 1e-2;
  const auto speech = two_words();
  Trainer trainer(config, *speech);
  const Evaluation before = trainer.evaluate();
  for (std::int64_t i = 0; i < config.steps; ++i) static_cast<void>(trainer.step());
  const Evaluation after = trainer.evaluate();
  CHECK(before.metric > 50);
  CHECK(after.metric < 15);
  CHECK(after.loss < 0.3 * before.loss);
}

}  // namespace
}  // namespace halfscope::deep_speech_test
