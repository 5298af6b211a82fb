// Training: it learns, its arms differ in what they should, and dynamic loss scaling recovers.
#include "sim/train/trainer.hpp"

#include <cmath>

#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::trainer_test {
namespace {

const SmallDataset dataset;

TrainConfig small_config(const std::string& policy, const std::string& loss_scale) {
  return {.steps = 40, .batch = 32, .learning_rate = 3e-3, .policy = policy, .loss_scale = loss_scale};
}

struct Ending {
  float first_loss = 0;
  Evaluation evaluation;
  std::vector<StepRecord> records;
  bool finite = true;
};

Ending train(const TrainConfig& config) {
  Trainer trainer(config, dataset);
  Ending ending;
  for (std::int64_t i = 0; i < config.steps; ++i) ending.records.push_back(trainer.step());
  ending.first_loss = ending.records.front().loss;
  ending.evaluation = trainer.evaluate();
  ending.finite = trainer.weights_finite();
  return ending;
}

TEST_CASE("every policy but pure FP16 learns the small data set", "[trainer][long]") {
  for (const NamedPolicy& policy : policy_table) {
    INFO(policy.name);
    const Ending ending = train(small_config(std::string(policy.name), "1024"));
    if (policy.base == fp16_pure_policy) {
      CHECK_FALSE(ending.finite);
      continue;
    }
    CHECK(ending.finite);
    CHECK(ending.records.back().loss < 0.3f * ending.first_loss);
    CHECK(ending.evaluation.metric > 90);
  }
}

TEST_CASE("sgd learns too", "[trainer]") {
  TrainConfig config = small_config("fp16_mixed", "128");
  config.optimizer = "sgd";
  config.learning_rate = 0.02;
  CHECK(train(config).evaluation.metric > 90);
}

TEST_CASE("observing changes no number", "[trainer]") {
  TrainConfig config = small_config("fp16_mixed", "1024");
  config.observe_every = 1;
  const Ending watched = train(config);
  config.trackers = "none";
  config.observe_every = 0;
  const Ending unwatched = train(config);
  for (std::size_t i = 0; i < watched.records.size(); ++i)
    CHECK(watched.records[i].loss == unwatched.records[i].loss);
  CHECK(watched.evaluation.loss == unwatched.evaluation.loss);
  CHECK_FALSE(unwatched.records[9].observations.has_value());
}

/// The same with no test examples but the first ones.
struct FewTests final : Dataset {
  static constexpr std::int64_t tests = 7;

  [[nodiscard]] std::int64_t size(Split split) const override {
    return split == Split::test ? tests : dataset.size(split);
  }
  [[nodiscard]] Shape example_shape() const override { return dataset.example_shape(); }
  [[nodiscard]] std::int64_t class_count() const override { return dataset.class_count(); }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    return dataset.batch(split, indices);
  }
};

TEST_CASE("an evaluation of the first test examples takes no others", "[trainer]") {
  TrainConfig config = small_config("fp32", "none");
  const Evaluation all = Trainer(config, dataset).evaluate();
  const Evaluation few = Trainer(config, FewTests{}).evaluate();
  CHECK(few.loss != all.loss);
  config.evaluation.examples = FewTests::tests;
  const Evaluation first = Trainer(config, dataset).evaluate();
  CHECK(first.loss == few.loss);
  CHECK(first.metric == few.metric);
  config.evaluation.examples = 1000;  // more than there are
  CHECK(Trainer(config, dataset).evaluate().loss == all.loss);
}

TEST_CASE("a power-of-two loss scale changes nothing in FP32", "[trainer]") {
  const Ending plain = train(small_config("fp32", "none")), scaled = train(small_config("fp32", "1024"));
  CHECK(plain.evaluation.loss == scaled.evaluation.loss);
}

TEST_CASE("dynamic scaling skips overflowing steps, backs off and goes on", "[trainer]") {
  TrainConfig config = small_config("fp16_mixed", "dynamic");
  config.scaler_options = {{"initial_scale", 0x1p30}, {"growth_interval", 1000}};
  const Ending ending = train(config);
  CHECK(ending.records[0].skipped);
  CHECK(ending.records[0].scale == 0x1p30);
  CHECK(ending.records[1].scale == 0x1p29);
  CHECK_FALSE(ending.records.back().skipped);
  CHECK(ending.finite);
  CHECK(ending.evaluation.metric > 90);
}

TEST_CASE("a constant scale that overflows ruins the weights", "[trainer]") {
  CHECK_FALSE(train(small_config("fp16_mixed", "1e9")).finite);
}

TEST_CASE("lost updates: all of them where the learning rate is far below half an ulp", "[trainer][known]") {
  TrainConfig config = small_config("fp16_no_master", "1024");
  config.learning_rate = 1e-9;
  config.steps = 1;
  const StepRecord record = Trainer(config, dataset).step();
  REQUIRE(record.observations);
  int weights = 0;
  for (const UpdateCounters& update : record.observations->updates) {
    if (update.tensor != "conv1.weight" && update.tensor != "fc1.weight") continue;
    ++weights;
    CHECK(update.nonzero > 0);
    CHECK(static_cast<double>(update.lost) > 0.99 * static_cast<double>(update.nonzero));
  }
  CHECK(weights == 2);
}

TEST_CASE("flushed gradients: a loss scale of 2^-30 flushes the weight gradients of every layer",
          "[trainer][known]") {
  TrainConfig config = small_config("fp16_mixed", "9.313225746154785e-10");
  config.steps = 1;
  const StepRecord record = Trainer(config, dataset).step();
  REQUIRE(record.observations);
  std::size_t weights = 0;
  for (const TensorCounters& tensor : record.observations->tensors) {
    if (tensor.tensor != "fc2.weight" || tensor.role != Role::weight_gradient) continue;
    ++weights;
    // The logits' gradients were flushed before they could reach it: exact zeros, nothing left to flush.
    CHECK(tensor.counters.zeros == tensor.elements);
  }
  CHECK(weights == 1);
  const TensorCounters& logits = record.observations->tensors.front();
  CHECK(logits.tensor == "fc2");
  CHECK(logits.counters.flushed == logits.elements);
}

TEST_CASE("checkpoints restore a run to the bit and refuse another network's", "[trainer]") {
  const TrainConfig config = small_config("fp16_mixed", "dynamic");
  Trainer whole(config, dataset), first(config, dataset), second(config, dataset);
  for (int i = 0; i < 12; ++i) (void)whole.step();
  for (int i = 0; i < 5; ++i) (void)first.step();
  second.restore(first.checkpoint());
  CHECK(second.steps_done() == 5);
  for (int i = 0; i < 7; ++i) (void)second.step();
  CHECK(second.evaluate().loss == whole.evaluate().loss);
  SafetensorsFile checkpoint = first.checkpoint();
  checkpoint.tensors.erase(checkpoint.tensors.begin());
  check_says(message_of<InvalidArgument>([&] { second.restore(checkpoint); }),
             {"lacks the tensor model.conv1.weight"});
  checkpoint = first.checkpoint();
  checkpoint.metadata["step"] = "many";
  check_says(message_of<InvalidArgument>([&] { second.restore(checkpoint); }), {"step = 'many'"});
}

TEST_CASE("what cannot be trained is refused at once", "[trainer]") {
  TrainConfig config = small_config("fp32", "none");
  config.batch = 97;
  CHECK_THROWS_AS(Trainer(config, dataset), InvalidArgument);
  config.batch = 32;
  config.device = "cuda";
  check_says(message_of<InvalidArgument>([&] { Trainer(config, dataset); }),
             {"built without CUDA", "--device cpu"});
}

}  // namespace
}  // namespace halfscope::trainer_test
