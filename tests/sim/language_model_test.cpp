// Language models: they learn a text, are judged by perplexity, and give the same bits on any threads.
#include "sim/models/models.hpp"

#include <cmath>

#include "sim/data/datasets.hpp"
#include "sim/models/perplexity.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope {
namespace {

/// A rhyme of six words over and over: after a word, the next is certain.
std::unique_ptr<Dataset> rhyme() {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "round and round the garden goes ";
  return open_kjv_text({.data = folder.put("rhyme.txt", text), .vocabulary = 20, .sequence_length = 5});
}

TrainConfig config_of(const std::string& model, const std::string& policy) {
  return {.model = model,
          .embedding_size = 8,
          .hidden_size = 12,
          .steps = 60,
          .batch = 16,
          .learning_rate = 0.03,
          .clip_norm = 1,
          .policy = policy,
          .loss_scale = policy == "fp32" ? "none" : "1024"};
}

Evaluation trained(const TrainConfig& config, const Dataset& dataset) {
  Trainer trainer(config, dataset);
  for (std::int64_t i = 0; i < config.steps; ++i) (void)trainer.step();
  return trainer.evaluate();
}

TEST_CASE("language models learn a rhyme, in FP32 and in FP16", "[language]") {
  const auto dataset = rhyme();
  for (const char* model : {"gru_lm", "lstm_lm"}) {
    for (const char* policy : {"fp32", "fp16_mixed"}) {
      INFO(model << ", " << policy);
      const TrainConfig config = config_of(model, policy);
      const Evaluation before = Trainer(config, *dataset).evaluate(), after = trained(config, *dataset);
      CHECK(before.metric > 5);
      CHECK(after.metric < 1.5);
      CHECK(after.metric == Approx(std::exp(after.loss)).epsilon(1e-4));
    }
  }
}

TEST_CASE("a language model's bits do not depend on the threads", "[language]") {
  const auto dataset = rhyme();
  for (const char* model : {"gru_lm", "lstm_lm"}) {
    TrainConfig config = config_of(model, "fp16_mixed");
    config.steps = 5;
    config.dropout = 0.2;
    config.activation = "fp16/stochastic";
    config.hidden_size = config.embedding_size = 96;
    config.batch = 48;
    const double one = trained(config, *dataset).loss;
    const double two = with_threads(2, [&] { return trained(config, *dataset).loss; });
    CHECK(one == two);
    config.dropout = 0;
    CHECK(trained(config, *dataset).loss != one);
  }
}

TEST_CASE("perplexity is the exponential of the mean over predictions, not over batches", "[language]") {
  TrackerList none;
  Caster caster({}, 0, none);
  const auto metric = make_perplexity();
  const auto add = [&](float loss, std::size_t predictions) {
    Tape tape(caster, Phase::evaluation);
    const TensorRef value =
        tape.record({.name = "loss", .value = Array::from({}, {loss}), .rounds = Rounds::no});
    metric->add(tape, {.loss = value}, {.labels = std::vector<std::int32_t>(predictions)});
  };
  add(1.0f, 30);
  add(3.0f, 10);
  CHECK(metric->value() == Approx(std::exp(1.5)).epsilon(1e-6));
}

TEST_CASE("a language model wants a text", "[language]") {
  const SmallDataset images;
  check_says(message_of<InvalidArgument>([&] { Trainer(config_of("gru_lm", "fp32"), images); }),
             {"gru_lm", "(time)", "(8, 8, 1)"});
}

}  // namespace
}  // namespace halfscope
