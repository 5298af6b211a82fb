// Loss scalers in training: what they see, what is recorded of it, and runs that they end.
#include <halfscope/io/file.hpp>
#include <halfscope/scaling/scalers.hpp>

#include <cmath>

#include "sim/train/run.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::scaler_training_test {
namespace {

const SmallDataset dataset;

TrainConfig config_of(std::string_view scaler) {
  return {.steps = 20,
          .batch = 32,
          .policy = "fp16_mixed",
          .loss_scale = std::string(scaler),
          .trackers = "none",
          .observe_every = 0,
          .checkpoint_every = 6};
}

struct Killed : std::exception {};

std::string metrics_of(const RunFolder& folder) {
  return read_file(folder.path() / "metrics.jsonl") +
         read_file(folder.path() / "checkpoint/state.safetensors");
}

TEST_CASE("under every scaler a resumed run has the bytes of an unbroken one, for any thread count",
          "[run][scaling][repeats]") {
  const TemporaryFolder temporary;
  for (const ScalerEntry& entry : scaler_table) {
    INFO(entry.name);
    TrainConfig config = config_of(entry.name);
    config.record_gradients = "histogram";
    const RunFolder whole(temporary.path() / "whole", {"experiment", std::string(entry.name), 0});
    run_training(parsed(config), dataset, whole, [](const StepRecord&) {});
    const RunFolder broken(temporary.path() / "broken", {"experiment", std::string(entry.name), 0});
    with_threads(2, [&] {
      CHECK_THROWS_AS(run_training(parsed(config), dataset, broken,
                                   [](const StepRecord& record) {
                                     if (record.step == 15) throw Killed();
                                   }),
                      Killed);
      run_training(parsed(config), dataset, broken, [](const StepRecord&) {});
    });
    CHECK(metrics_of(broken) == metrics_of(whole));
  }
}

TEST_CASE("what is recorded of the gradients does not change the run", "[trainer][scaling]") {
  for (const char* scaler : {"none", "dynamic", "popart", "headroom"}) {
    std::vector<float> losses;
    for (const std::string_view detail : enum_names<GradientDetail>) {
      INFO(scaler << " " << detail);
      TrainConfig config = config_of(scaler);
      config.record_gradients = detail;
      Trainer trainer(config, dataset);
      const StepRecord record = trainer.step();
      losses.push_back(trainer.step().loss);
      CHECK(losses.back() == losses.front());
      const GradientDetail expected =
          std::max(parse_enum<GradientDetail>("detail", detail), make_scaler(scaler)->needs());
      REQUIRE(record.gradients.has_value() == (expected > GradientDetail::none));
      if (!record.gradients) continue;
      CHECK(record.gradients->max_abs.has_value() == (expected >= GradientDetail::max_abs));
      CHECK(record.gradients->histogram.has_value() == (expected == GradientDetail::histogram));
    }
  }
}

TEST_CASE("the records have the largest gradient and all of their histogram", "[trainer][scaling]") {
  // In FP32 nothing is rounded: both are of the same numbers.
  TrainConfig config = config_of("1024");
  config.policy = "fp32";
  config.record_gradients = "histogram";
  config.trackers = "cast_statistics";
  config.observe_every = 1;
  const StepRecord record = Trainer(config, dataset).step();
  REQUIRE(record.gradients);
  ExponentHistogram all;
  float largest = 0;
  for (const HistogramRecord& histogram : record.observations->histograms) {
    if (histogram.what == "weight_gradient") all.merge(histogram.histogram);
  }
  for (const TensorCounters& tensor : record.observations->tensors) {
    if (tensor.role == Role::weight_gradient) largest = std::max(largest, tensor.counters.max_abs);
  }
  CHECK(all.elements() > 1000);
  CHECK(*record.gradients->histogram == all);
  CHECK(*record.gradients->max_abs == largest);
  CHECK(record.gradients->finite);
  // The histogram is of what is rounded, the largest gradient of what that leaves.
  config.roles.activation_gradient = "fp32";
  config.roles.weight_gradient = "fp16";
  config.loss_scale = "9.313225746154785e-10";
  const StepRecord flushed = Trainer(config, dataset).step();
  CHECK(flushed.gradients->histogram->nonzero() > 1000);
  CHECK(*flushed.gradients->max_abs == 0);
  config = config_of("1e9");
  const StepRecord overflow = Trainer(config, dataset).step();
  CHECK_FALSE(overflow.gradients->finite);
  CHECK_FALSE(std::isfinite(*overflow.gradients->max_abs));
}

TEST_CASE("a scaler that gives up fails the run and says why", "[run][scaling]") {
  const TemporaryFolder temporary;
  for (const char* scaler : {"deepspeed", "fairseq", "headroom"}) {
    INFO(scaler);
    TrainConfig config = config_of(scaler);
    // The loss itself is far too large, so that no scale helps.
    config.loss_weight = 1e30;
    config.scaler_options = {{"initial_scale", 2}, {"min_scale", 1}};
    const RunFolder folder(temporary.path(), {"experiment", scaler, 0});
    const std::string message = message_of<RuntimeFailure>(
        [&] { run_training(parsed(config), dataset, folder, [](const StepRecord&) {}); });
    check_says(message, {scaler, "1"});
    CHECK(read_file(folder.path() / "status") == "FAILED: " + message + "\n");
  }
}

}  // namespace
}  // namespace halfscope::scaler_training_test
