// How often a training step waits for the device: it does not depend on the network.
#include <cstdlib>

#include <halfscope/device/detail/device_memory.hpp>

#include "sim/train/trainer.hpp"
#include "tests/sim/corners.hpp"
#include "tests/sim/few_words.hpp"
#include "tests/sim/own_options.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::host_waits_test {
namespace {

/// Once for what the forward and backward passes have counted, once for the update.
constexpr std::int64_t waits_of_a_step = 2;

struct Step {
  StepRecord record;
  std::int64_t waits = 0;
};

/// The third step: the ones before it find out how much there is to be read back.
Step third_step(TrainConfig config, const Dataset& dataset) {
  const SimulatedDevice simulated;
  config.device = "cuda";
  config.batch = 6;
  Trainer trainer(config, dataset);
  for (int i = 0; i < 2; ++i) (void)trainer.step();
  const std::int64_t before = device_memory::host_waits();
  StepRecord record = trainer.step();
  return {std::move(record), device_memory::host_waits() - before};
}

TrainConfig watched(const std::string& model) {
  return {.model = model,
          .model_options = own_options(model, {{"embedding_size", 8}, {"hidden_size", 12}}),
          .clip_norm = 0.5,
          .policy = "fp16_mixed",
          .loss_scale = "128",
          .record_gradients = "histogram",
          .observe_roles = "all",
          .observe_every = 1};
}

TEST_CASE("a step that everything watches waits for the device twice", "[trainer][cuda][long]") {
  if (!can_use_device()) return;
  const SmallDataset images;
  const Corners scenes;
  const CornerPixels pixels{1};
  const FewWords words;
  const std::pair<const char*, const Dataset*> networks[] = {
      {"cnn_bn", &images}, {"ssd", &scenes}, {"unet", &pixels}, {"gru_lm", &words}, {"lstm_lm", &words}};
  for (const auto& [model, dataset] : networks) {
    INFO(model);
    TrainConfig config = watched(model);
    const Step step = third_step(config, *dataset);
    CHECK(step.waits == waits_of_a_step);
    REQUIRE(step.record.observations);
    CHECK(step.record.observations->tensors.size() > 10);
    CHECK(step.record.observations->updates.size() > 4);
    CHECK(step.record.gradients->histogram->elements() > 100);
    config.trackers = "none";
    config.record_gradients = "none";
    config.clip_norm = 0;
    CHECK(third_step(config, *dataset).waits == waits_of_a_step);
  }
}

TEST_CASE("a skipped step waits for its weights where others wait for their update", "[trainer][cuda]") {
  if (!can_use_device()) return;
  TrainConfig config = watched("cnn_bn");
  config.trackers = "cast_statistics,reduction_overflow,lost_updates";
  config.loss_scale = "dynamic";
  config.scaler_options = {{"initial_scale", 0x1p60}};
  const Step step = third_step(config, SmallDataset{});
  CHECK(step.record.skipped);
  CHECK_FALSE(step.record.diverged);
  CHECK(step.waits == waits_of_a_step);
}

TEST_CASE("steps are launched as one graph each, and cut where the host asks", "[trainer][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const SmallDataset images;
  TrainConfig config = watched("cnn_bn");
  config.device = "cuda";
  config.batch = 6;
  {
    const EnvironmentVariable off("HALFSCOPE_CUDA_GRAPH", "off");
    CHECK(Trainer(config, images).graph() == nullptr);
  }
  std::optional<EnvironmentVariable> graphs(std::in_place, "HALFSCOPE_CUDA_GRAPH", "on");
  Trainer trainer(config, images);
  config.loss_scale = "layerwise";  // asks for magnitudes in the middle of the backward pass
  Trainer asking(config, images);
  graphs.reset();  // read when a trainer is made
  constexpr int steps = 8, unrecorded = 2;
  for (int i = 0; i < steps; ++i) {
    (void)trainer.step();
    (void)asking.step();
  }
  REQUIRE(trainer.graph() != nullptr);
  CHECK(trainer.graph()->counts().whole == steps - unrecorded);
  CHECK(trainer.graph()->counts().updated == steps - unrecorded - 1);
  CHECK(trainer.graph()->counts().cut == 0);
  CHECK(asking.graph()->counts().whole == 0);
  CHECK(asking.graph()->counts().cut == steps - unrecorded);
}

}  // namespace
}  // namespace halfscope::host_waits_test
