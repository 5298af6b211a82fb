// Checkpoints of activations: no bit of a training changes, trackers observe nothing twice, less is kept.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

#include <halfscope/device/memory.hpp>

#include "sim/data/blank_images.hpp"
#include "sim/layers/layers.hpp"
#include "sim/models/parts/chain.hpp"
#include "sim/train/memory.hpp"
#include "sim/train/records.hpp"
#include "tests/sim/repeated_words.hpp"
#include "tests/sim/small_runs.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::checkpoint_test {
namespace {

/// Records of every tracker at every step, and the weights and statistics at the end.
struct Training {
  RecordText records{};
  std::map<std::string, std::vector<float>> tensors{};

  friend bool operator==(const Training& a, const Training& b) {
    return a.records.metrics == b.records.metrics && a.records.histograms == b.records.histograms &&
           a.tensors == b.tensors;
  }
};

Training train(TrainConfig config, const Dataset& dataset, std::int64_t segments) {
  config.checkpoint_segments = segments;
  Trainer trainer(config, dataset);
  trainer.try_example();
  Training training;
  for (std::int64_t i = 0; i < config.steps; ++i) append_record(training.records, trainer.step(), nullptr);
  REQUIRE(trainer.weights_finite());
  for (const NamedArray& tensor : trainer.checkpoint().tensors)
    training.tensors[tensor.name] = {tensor.array.values().begin(), tensor.array.values().end()};
  return training;
}

TrainConfig watched(const char* model, const char* policy) {
  TrainConfig config{.steps = 3, .batch = 4, .learning_rate = 1e-3, .policy = policy, .loss_scale = "128"};
  config.model = model;
  config.observe_every = 1;
  config.observe_roles = "all";
  return config;
}

TEST_CASE("a residual network trains with the same bits and the same counts in any segments",
          "[checkpoint]") {
  for (const char* policy : {"fp32", "fp16_mixed", "autocast_cuda"}) {
    INFO(policy);
    TrainConfig config = watched("resnet18_narrow", policy);
    const Training whole = train(config, small_dataset, 0);
    for (const std::int64_t segments : {1, 2, 3, 8, 100})
      CHECK(train(config, small_dataset, segments) == whole);
  }
}

TEST_CASE("stochastic rounding, micro-batches, layer-wise scales and an overflow repeat too",
          "[checkpoint]") {
  const auto check = [](const TrainConfig& config) {
    CHECK(train(config, small_dataset, 3) == train(config, small_dataset, 0));
  };
  TrainConfig config = watched("resnet18_narrow", "fp16_mixed");
  config.roles.activation = "fp16/stochastic";
  config.roles.weight = "fp16/stochastic";
  check(config);
  config.parts.micro_batches = 2;
  check(config);
  config = watched("resnet18_narrow", "fp16_mixed");
  config.loss_scale = "layerwise";
  check(config);
  config.loss_scale = "dynamic";
  config.scaler_options = {{"initial_scale", 0x1p30}};
  check(config);
  config.fp32_reference_every = 1;
  config.probes.scales = "1,2^10";
  config.probes.every = 1;
  check(config);
}

TEST_CASE("pre-activated blocks and a transformer's layers, with dropout, are chains", "[checkpoint]") {
  TrainConfig config = watched("resnet50_preact", "fp16_mixed");
  config.model_options["width"] = 0.0625;
  config.loss_scale = "1";
  CHECK(train(config, small_dataset, 4) == train(config, small_dataset, 0));
  config = watched("bert", "fp16_mixed");
  config.dataset = "masked_verses";
  config.model_options["embedding_size"] = 8;
  config.model_options["hidden_size"] = 12;
  config.model_options["heads"] = 2;
  config.model_options["layers"] = 4;
  config.model_options["dropout"] = 0.2;
  const auto verses = open_repeated_words("masked_verses", 13);
  CHECK(train(config, *verses, 2) == train(config, *verses, 0));
}

std::int64_t activation_bytes(const char* model_name, const Dataset& dataset, const ModelSpec& spec,
                              std::int64_t segments) {
  const Model model = find_in_table("model", model_name, model_table).kind.make(spec);
  const auto make_batch = [&](std::int64_t count) {
    return dataset.batch(Split::train, std::vector<std::int64_t>(static_cast<std::size_t>(count), 0));
  };
  const NetworkElements network = count_elements(model, make_batch, {8, fp16_mixed_policy(), segments});
  const std::vector<MemoryItem> items = memory_of(network, {fp16_mixed_policy(), 2});
  return std::ranges::find(items, "activation", &MemoryItem::name)->bytes;
}

TEST_CASE("a chain of sixteen layers in four segments keeps less than half", "[checkpoint]") {
  const auto verses = open_repeated_words("masked_verses", 13);
  const ModelSpec spec{
      .example_shape = verses->example_shape(),
      .class_count = verses->class_count(),
      .token_count = verses->token_count(),
      .text_labels = verses->text_labels(),
      .options = {{"embedding_size", 16}, {"hidden_size", 64}, {"layers", 16}, {"heads", 2}}};
  const std::int64_t whole = activation_bytes("bert", *verses, spec, 0);
  CHECK(activation_bytes("bert", *verses, spec, 1) == whole);
  CHECK(2 * activation_bytes("bert", *verses, spec, 4) < whole);
  CHECK(activation_bytes("bert", *verses, spec, 2) > activation_bytes("bert", *verses, spec, 4));
}

TEST_CASE("ResNet-50 of sixteen blocks in four segments keeps less than half", "[checkpoint][long]") {
  const auto images = make_blank_images({224, 224, 3}, 1000);
  const ModelSpec spec{.example_shape = {224, 224, 3}, .class_count = 1000, .initial = InitialWeights::unset};
  const std::int64_t whole = activation_bytes("resnet50", *images, spec, 0);
  CHECK(2 * activation_bytes("resnet50", *images, spec, 4) < whole);
}

/// The most bytes that a step's arrays have on the device together, of sixteen transformer layers.
std::int64_t peak_of_step(const Dataset& verses, std::int64_t segments) {
  const SimulatedDevice simulated;
  TrainConfig config = watched("bert", "fp16_mixed");
  config.dataset = "masked_verses";
  config.device = "cuda";
  config.observe_every = 0;
  config.batch = 32;
  config.model_options["embedding_size"] = 16;
  config.model_options["hidden_size"] = 64;
  config.model_options["heads"] = 2;
  config.model_options["layers"] = 16;
  config.checkpoint_segments = segments;
  Trainer trainer(config, verses);
  (void)trainer.step();
  reset_peak_device_bytes();
  (void)trainer.step();
  return peak_device_bytes();
}

TEST_CASE("the peak of a step's memory falls", "[checkpoint][cuda][long]") {
  if (!can_use_device()) return;
  const auto verses = open_repeated_words("masked_verses", 13);
  const std::int64_t whole = peak_of_step(*verses, 0), two = peak_of_step(*verses, 2),
                     four = peak_of_step(*verses, 4);
  CAPTURE(whole, two, four);
  CHECK(10 * two < 7 * whole);
  CHECK(10 * four < 5 * whole);
}

TEST_CASE("what is dropped is gone until the backward pass, which runs each segment once", "[checkpoint]") {
  TrackerList nobody;
  Caster caster(fp32_policy(), 0, nobody);
  caster.begin_step({});
  std::map<int, int> runs;
  std::vector<ChainBlock> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back({[i, &runs](Tape& tape, TensorRef x) {
      ++runs[i];
      return tanh(tape, "tanh" + std::to_string(i), tanh(tape, "inner" + std::to_string(i), x));
    }});
  }
  ParameterStore store;
  Parameter& weight = store.add("weight", Array::from({3}, {0.5f, -1, 2}));
  const auto gradient = [&](std::int64_t segments, std::int64_t kept) {
    runs.clear();
    Tape tape(caster, Phase::training, {.segments = segments});
    const TensorRef x = add_residual(tape, "x", leaf(tape, weight), leaf(tape, weight));
    const TensorRef y = sigmoid_cross_entropy(tape, "loss", chain(tape, x, blocks), Array::zeros({3}));
    std::int64_t live = 0;
    for (const TapeEntry& entry : tape.entries())
      if (entry.segment == 0 && entry.parameter == nullptr) live += entry.elements;
    CHECK(live == kept);
    tape.backward(y, 1);
    return std::vector<float>(weight.gradient.values().begin(), weight.gradient.values().end());
  };
  const std::vector<float> whole = gradient(0, 3 + 8 * 3 + 1);
  CHECK(runs == std::map<int, int>{{0, 1}, {1, 1}, {2, 1}, {3, 1}});
  CHECK(gradient(2, 3 + 3 + 4 * 3 + 1) == whole);
  CHECK(runs == std::map<int, int>{{0, 2}, {1, 2}, {2, 1}, {3, 1}});
  CHECK(gradient(4, 3 + 3 * 3 + 2 * 3 + 1) == whole);
  CHECK(runs == std::map<int, int>{{0, 2}, {1, 2}, {2, 2}, {3, 1}});
}

TEST_CASE("a segment that is another when it runs again is an error", "[checkpoint]") {
  TrackerList nobody;
  Caster caster(fp32_policy(), 0, nobody);
  caster.begin_step({});
  ParameterStore store;
  Parameter& weight = store.add("weight", Array::from({2}, {0.5f, -1}));
  Tape tape(caster, Phase::training, {.segments = 1});
  bool first = true;
  const TensorRef x = tape.checkpoint(leaf(tape, weight), [&](Tape& on, TensorRef in) {
    if (std::exchange(first, false)) in = tanh(on, "once", in);
    return tanh(on, "always", in);
  });
  const TensorRef loss = sigmoid_cross_entropy(tape, "loss", x, Array::zeros({2}));
  CHECK_THROWS_AS(tape.backward(loss, 1), RuntimeFailure);
}

TEST_CASE("segments of a model that is no chain are refused, as is their number", "[checkpoint]") {
  TrainConfig config = watched("cnn_bn", "fp32");
  config.checkpoint_segments = 4;
  check_says(message_of<InvalidArgument>([&] { check_training(parsed(config), small_dataset); }),
             {"checkpoint_segments = 4", "model cnn_bn is no chain", "resnet50"});
  check_says(message_of<InvalidArgument>([&] { set_field(config, "checkpoint_segments", "-1"); }),
             {"checkpoint_segments = '-1'"});
}

}  // namespace
}  // namespace halfscope::checkpoint_test
