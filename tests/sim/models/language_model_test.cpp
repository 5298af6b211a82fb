// Language models: they learn a text, are judged by perplexity, and give the same bits on any threads.
#include "sim/models/models.hpp"

#include <cmath>
#include <set>

#include "sim/data/datasets.hpp"
#include "sim/layers/layers.hpp"
#include "sim/models/parts/accuracy.hpp"
#include "sim/models/parts/perplexity.hpp"
#include "sim/models/parts/word_sampler.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::language_model_test {
namespace {

/// A rhyme of six words over and over: after a word, the next is certain.
std::unique_ptr<Dataset> rhyme() {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "round and round the garden goes ";
  return kjv_text_kind.open(
      {.data = folder.put("rhyme.txt", text), .options = {{"vocabulary", 20}, {"sequence_length", 5}}});
}

TrainConfig config_of(const std::string& model, const std::string& policy) {
  return {.model = model,
          .model_options = {{"embedding_size", 8}, {"hidden_size", 12}},
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
  for (const char* model : {"gru_lm", "lstm_lm", "big_lstm"}) {
    for (const char* policy : {"fp32", "fp16_mixed"}) {
      INFO(model << ", " << policy);
      TrainConfig config = config_of(model, policy);
      if (config.model == "big_lstm") config.steps = 200;  // two layers, and a loss over samples
      const Evaluation before = Trainer(config, *dataset).evaluate(), after = trained(config, *dataset);
      CHECK(before.metric > 5);
      CHECK(after.metric < 1.5);
      CHECK(after.metric == Approx(std::exp(after.loss)).epsilon(1e-4));
    }
  }
}

TEST_CASE("a language model's bits do not depend on the threads", "[language]") {
  const auto dataset = rhyme();
  for (const char* model : {"gru_lm", "lstm_lm", "big_lstm"}) {
    TrainConfig config = config_of(model, "fp16_mixed");
    config.steps = 5;
    config.model_options["dropout"] = 0.2;
    config.roles.activation = "fp16/stochastic";
    config.model_options["hidden_size"] = config.model_options["embedding_size"] = 96;
    config.batch = 48;
    const double one = trained(config, *dataset).loss;
    const double two = with_threads(2, [&] { return trained(config, *dataset).loss; });
    CHECK(one == two);
    config.model_options["dropout"] = 0;
    CHECK(trained(config, *dataset).loss != one);
  }
}

TEST_CASE("perplexity is over all predictions, not over batches, as its accuracy is", "[language]") {
  TrackerList none;
  Caster caster({}, 0, none);
  const auto metric = make_perplexity();
  const auto add = [&](float loss, std::size_t predictions) {
    Tape tape(caster, Phase::evaluation);
    const TensorRef value = tape.input("loss", Array::from({}, {loss}));
    // The first class is the likelier one of each prediction but the last.
    Array logits({static_cast<std::int64_t>(predictions), 2}, Device::cpu);
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = i % 2 == 0 ? 1.0f : 0.0f;
    logits[logits.size() - 1] = 2;
    const TensorRef scores = tape.input("logits", std::move(logits));
    metric->add(tape, {.loss = value, .predictions = {scores}},
                {.labels = std::vector<std::int32_t>(predictions)});
  };
  add(1.0f, 30);
  add(3.0f, 10);
  CHECK(metric->value() == Approx(std::exp(1.5)).epsilon(1e-6));
  CHECK(metric->at_loss(1.5) == metric->value());
  CHECK(metric->accuracy() == 95.0);
  CHECK(make_accuracy()->at_loss(1.5) == std::nullopt);
  CHECK(make_accuracy()->accuracy() == std::nullopt);
}

TEST_CASE("a language model wants a text", "[language]") {
  const SmallDataset images;
  for (const char* model : {"gru_lm", "big_lstm"}) {
    check_says(message_of<InvalidArgument>([&] { Trainer(config_of(model, "fp32"), images); }),
               {model, "(time)", "(8, 8, 1)"});
  }
  check_says(
      message_of<InvalidArgument>([] { (void)big_lstm_kind.make({.example_shape = {4}, .class_count = 1}); }),
      {"sampled words", "vocabulary of 1"});
}

TEST_CASE("the big LSTM has the published number of weights", "[language]") {
  // LSTM-8192-1024 of Jozefowicz et al., table 1: 1.8 billion. A bias more per gate than theirs, as
  // PyTorch's.
  constexpr std::int64_t vocabulary = 793'471, state = 1024, hidden = 8192;
  const Model model = big_lstm_kind.make({.example_shape = {20},
                                          .class_count = vocabulary,
                                          .options = {{"embedding_size", state}, {"hidden_size", hidden}},
                                          .initial = InitialWeights::unset});
  std::size_t count = 0;
  for (const Parameter& parameter : model.store->parameters) count += parameter.master.size();
  CHECK(count == 2 * vocabulary * state + vocabulary + 2 * (2 * (state + 1) * 4 * hidden + hidden * state));
  CHECK(count == 1'776'948'095);
}

TEST_CASE("sampled words are different, as frequent as their law says and counted as expected",
          "[language]") {
  constexpr std::int64_t vocabulary = 50, count = 10;
  constexpr int trials = 4000;
  const WordSampler sampler(vocabulary, count);
  std::vector<int> found(vocabulary);
  double expected_sum = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const WordSamples samples =
        sampler.draw({.seed = 5, .step = static_cast<std::uint32_t>(trial), .site = 1});
    REQUIRE(std::set<std::int32_t>(samples.words.begin(), samples.words.end()).size() == count);
    for (const std::int32_t word : samples.words) ++found[static_cast<std::size_t>(word)];
    for (const float log_expected : samples.log_expected) expected_sum += std::exp(log_expected);
  }
  // The first word has a share of log 2 / log 51 of the draws, the last of log(51 / 50) / log 51.
  CHECK(std::is_sorted(found.rbegin() + 40, found.rend()));
  CHECK(found[0] > 0.8 * trials);
  CHECK(found[49] < 0.15 * trials);
  // The expected counts of all words add up to about the number of samples.
  CHECK(expected_sum / trials == Approx(count).epsilon(0.03));
  const WordSamples once = WordSampler(vocabulary, 1).draw({.seed = 1, .step = 2, .site = 3});
  for (std::size_t k = 0; k < vocabulary; ++k) {
    const double probability = std::log(1 + 1 / static_cast<double>(k + 1)) / std::log(51.0);
    CHECK(once.log_expected[k] == Approx(std::log(probability)).epsilon(1e-5));
  }
}

TEST_CASE("a sample that is a row's label is out of its race alone", "[language]") {
  TrackerList none;
  Caster caster({}, 0, none);
  Tape tape(caster, Phase::training);
  ParameterStore store;
  const std::vector<std::int32_t> labels{1, 0}, samples{0, 2}, words{1, 0, 0, 2};
  Parameter& weight = store.add("weight", Array::from({3, 1}, {1, 2, 3}));
  Parameter& bias = store.add("bias", Array::zeros({3, 1}));
  const Tokens gathered{words, {4}};
  const SampledWords sampled{.weights = embedding(tape, "weights", gathered, weight),
                             .biases = embedding(tape, "biases", gathered, bias),
                             .labels = labels,
                             .samples = samples,
                             .correction = {0, 0, 0, 0}};
  const TensorRef x = tape.input("x", Array::from({2, 1}, {10, 20}));
  const Array& logits = tape.value(sampled_logits(tape, "y", x, sampled));
  CHECK(std::vector<float>(logits.values().begin(), logits.values().end()) ==
        std::vector<float>{20, 10, 30, 20, 20 - 1e4f, 60});
  SampledWords wrong = sampled;
  wrong.correction.pop_back();
  check_says(message_of<InvalidArgument>([&] { (void)sampled_logits(tape, "y", x, wrong); }),
             {"layer y", "2 labels and 2 samples", "(labels + samples, width)"});
}

}  // namespace
}  // namespace halfscope::language_model_test
