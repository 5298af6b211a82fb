// Jasper: its published size, utterances that do not depend on their batch or its padding, and that it
// learns.
#include "sim/models/models.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/two_words.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::jasper_test {
namespace {

constexpr double small_width = 0.015625;  // four channels at first

Model small_jasper() {
  return jasper_kind.make(
      {.example_shape = {150, 40}, .class_count = 3, .options = {{"width", small_width}}});
}

std::int64_t weights_of(const Model& model) {
  std::int64_t count = 0;
  for (const Parameter& parameter : model.store->parameters) count += std::ssize(parameter.master.values());
  return count;
}

TEST_CASE("Jasper DR 10x5 has the published 333 million weights", "[jasper]") {
  const Model model = jasper_kind.make({.example_shape = {1000, 64},
                                        .class_count = 29,
                                        .options = {{"width", 1}},
                                        .initial = InitialWeights::unset});
  const std::int64_t filters = 332'480'512, norms = 122'112, output = 1025 * 29;
  CHECK(weights_of(model) == filters + norms + output);
  CHECK(std::lround(static_cast<double>(weights_of(model)) * 1e-6) == 333);
  check_says(message_of<InvalidArgument>([] {
               static_cast<void>(jasper_kind.make({.example_shape = {28, 28, 1}, .class_count = 10}));
             }),
             {"model jasper", "(time, feature)", "(28, 28, 1)"});
}

TEST_CASE("no utterance of Jasper depends on those beside it in the batch", "[jasper]") {
  std::vector<Utterance> train, test;
  for (const std::int64_t frames : {9, 14, 30}) train.push_back(utterance_of({1, 2}, frames, 3));
  test.push_back(utterance_of({1}, 8, 4));
  const auto speech = make_speech(Alphabet{"ab"}, std::move(train), std::move(test));
  const Model model = small_jasper();
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

TEST_CASE("padding is no part of Jasper's batch statistics", "[jasper]") {
  const Batch batch = two_words()->batch(Split::train, std::vector<std::int64_t>{0, 20, 39});
  Batch longer{.lengths = batch.lengths, .label_counts = batch.label_counts};
  longer.labels = batch.labels;
  const std::int64_t time = batch.inputs.extent(1), more = time + 10, frame = batch.inputs.extent(2);
  longer.inputs = Array::zeros({3, more, frame});
  for (std::int64_t b = 0; b < 3; ++b) {
    const auto count = static_cast<std::size_t>(time * frame);
    std::ranges::copy(batch.inputs.values().subspan(static_cast<std::size_t>(b) * count, count),
                      longer.inputs.data() + b * more * frame);
  }
  const Array short_logits = logits_of(small_jasper(), batch, fp32_policy(), Phase::training),
              long_logits = logits_of(small_jasper(), longer, fp32_policy(), Phase::training);
  REQUIRE(long_logits.size() > short_logits.size());
  CHECK(std::ranges::equal(short_logits.values(), long_logits.values().first(short_logits.size())));
}

TEST_CASE("Jasper learns two words", "[jasper][long]") {
  TrainConfig config;
  config.model = "jasper";
  config.model_options["width"] = 0.03125;
  config.steps = 80;
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
}  // namespace halfscope::jasper_test
