// Steps in micro-batches: the format of the sum, one decision a step, random bits of each part's own.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "sim/train/gradient_sum.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/few_words.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::micro_batches_test {
namespace {

/// Sum of 2048 and 1, one after the other.
float sum_in(const FloatFormat& format) {
  ParameterStore store;
  Parameter& weight = store.add("weight", Array::zeros({1}));
  GradientSum sum(Quantizer{.format = format});
  for (const float gradient : {2048.0f, 1.0f}) {
    weight.gradient = Array::from({1}, {gradient});
    sum.add(store);
  }
  sum.finish(store);
  return weight.gradient[0];
}

TEST_CASE("FP16 holds the sum 2048 + 1 as 2048, FP32 as 2049", "[micro_batches]") {
  CHECK(sum_in(fp16) == 2048);
  CHECK(sum_in(fp32) == 2049);
  CHECK(sum_in(bf16) == 2048);
}

TrainConfig words(std::int64_t micro_batches, const char* policy = "fp32") {
  TrainConfig config{.steps = 20, .batch = 16, .policy = policy};
  config.model = "gru_lm";
  config.model_options["embedding_size"] = 8;
  config.model_options["hidden_size"] = 8;
  config.parts.micro_batches = micro_batches;
  config.observe_every = 1;
  return config;
}

Array weight_after(const TrainConfig& config, const Dataset& dataset, std::vector<float>* losses = nullptr) {
  Trainer trainer(config, dataset);
  for (std::int64_t i = 0; i < 5; ++i) {
    const float loss = trainer.step().loss;
    if (losses != nullptr) losses->push_back(loss);
  }
  SafetensorsFile checkpoint = trainer.checkpoint();
  return std::move(std::ranges::find(checkpoint.tensors, "model.embedding", &NamedArray::name)->array);
}

TEST_CASE("micro-batches train as the whole batch does, but for the order of FP32 sums", "[micro_batches]") {
  const FewWords dataset;
  std::vector<float> whole_losses, losses;
  const Array whole = weight_after(words(1), dataset, &whole_losses);
  for (const std::int64_t micro_batches : {2, 4, 16}) {
    losses.clear();
    const Array in_parts = weight_after(words(micro_batches), dataset, &losses);
    for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == Approx(whole_losses[i]).epsilon(1e-5));
    float furthest = 0;
    for (std::size_t i = 0; i < whole.size(); ++i)
      furthest = std::max(furthest, std::abs(whole[i] - in_parts[i]));
    CHECK(furthest < 2e-4f);  // Adam moves each weight by about 1e-3 a step
    CHECK(furthest > 0);
    CHECK(std::ranges::equal(in_parts.values(), weight_after(words(micro_batches), dataset).values()));
  }
}

/// One of its training images has an infinite pixel.
class OneInfinity final : public Dataset {
 public:
  [[nodiscard]] std::int64_t size(Split split) const override { return images_.size(split); }
  [[nodiscard]] Shape example_shape() const override { return images_.example_shape(); }
  [[nodiscard]] std::int64_t class_count() const override { return images_.class_count(); }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    Batch batch = images_.batch(split, indices);
    for (std::size_t i = 0; i < indices.size(); ++i)
      if (split == Split::train && indices[i] == 5)
        batch.inputs[64 * i] = std::numeric_limits<float>::infinity();
    return batch;
  }

 private:
  SmallDataset images_;
};

TEST_CASE("one micro-batch of four that is not finite skips the step and halves the scale once",
          "[micro_batches]") {
  const OneInfinity dataset;
  TrainConfig config{.steps = 8, .batch = 24, .policy = "fp16_mixed"};
  config.parts.micro_batches = 4;
  config.loss_scale = "dynamic";
  config.scaler_options = {{"initial_scale", 65536}, {"growth_interval", 2}};
  Trainer trainer(config, dataset);
  std::vector<double> scales;
  int skips = 0;
  for (int step = 0; step < 4; ++step) {  // an epoch: each image once
    const SafetensorsFile before = trainer.checkpoint();
    const StepRecord record = trainer.step();
    scales.push_back(record.scale);
    if (!record.skipped) continue;
    ++skips;
    const SafetensorsFile after = trainer.checkpoint();
    for (std::size_t i = 0; i < before.tensors.size(); ++i) {
      if (before.tensors[i].name.find("running") != std::string::npos) continue;
      CHECK(std::ranges::equal(before.tensors[i].array.values(), after.tensors[i].array.values()));
    }
    CHECK(trainer.step().scale == record.scale / 2);
    ++step;
  }
  CHECK(skips == 1);
  // Two successive effective steps that were finite double it.
  CHECK(std::ranges::all_of(scales, [](double scale) { return scale >= 32768 && scale <= 131072; }));
}

TEST_CASE("a scale grows after as many steps as without micro-batches", "[micro_batches]") {
  const SmallDataset dataset;
  for (const std::int64_t micro_batches : {1, 4}) {
    TrainConfig config{.steps = 8, .batch = 24, .policy = "fp16_mixed"};
    config.parts.micro_batches = micro_batches;
    config.loss_scale = "dynamic";
    config.scaler_options = {{"initial_scale", 1}, {"growth_interval", 2}};
    Trainer trainer(config, dataset);
    std::vector<double> scales;
    for (int step = 0; step < 5; ++step) scales.push_back(trainer.step().scale);
    CHECK(scales == std::vector<double>{1, 1, 2, 2, 4});
  }
}

TEST_CASE("each micro-batch has random bits of its own", "[micro_batches]") {
  TrackerList none;
  Caster caster({}, 3, none);
  caster.begin_step({.step = 7});
  std::set<std::uint32_t> bits{caster.random_stream("dropout").bits(0)};
  for (const std::int32_t index : {0, 1, 2}) {
    const Tape tape(caster, Phase::training, {.micro_batch = index});
    bits.insert(tape.random_stream("dropout").bits(0));
  }
  CHECK(bits.size() == 4);
  CHECK(bits.contains(Tape(caster, Phase::training).random_stream("dropout").bits(0)));
}

TEST_CASE("a step's records hold a tensor once, with the elements of all micro-batches", "[micro_batches]") {
  const FewWords dataset;
  const auto observed = [&](std::int64_t micro_batches) {
    Trainer trainer(words(micro_batches, "fp16_mixed"), dataset);
    return std::move(trainer.step().observations->tensors);
  };
  const auto whole = observed(1), in_parts = observed(4);
  REQUIRE(whole.size() == in_parts.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    INFO(whole[i].tensor << " " << name_of(whole[i].role));
    CHECK(whole[i].tensor == in_parts[i].tensor);
    const bool of_weights = whole[i].role == Role::weight || whole[i].role == Role::weight_gradient;
    const bool once = whole[i].role == Role::master_weight || whole[i].role == Role::optimizer_state;
    if (!once) CHECK(in_parts[i].elements == whole[i].elements * (of_weights ? 4 : 1));
  }
}

TEST_CASE("micro-batches that a batch does not have are refused", "[micro_batches]") {
  TrainConfig config = words(3);
  check_says(message_of<InvalidArgument>([&] { (void)parsed(config); }),
             {"micro_batches = 3", "batch = 16", "divisor"});
  config = words(4);
  config.parts.gradient_sum = "fp61";
  check_says(message_of<InvalidArgument>([&] { (void)parsed(config); }), {"fp61", "fp16"});
}

}  // namespace
}  // namespace halfscope::micro_batches_test
