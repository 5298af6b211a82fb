// The first overflow of a step: named where it was planted, at no cost to any number.
#include <algorithm>

#include <nlohmann/json.hpp>

#include <cmath>

#include "sim/train/overflow_record.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/planted_dataset.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::first_overflow_test {
namespace {

const SmallDataset small;

TrainConfig config_with(const std::string& loss_scale) {
  return {.steps = 12,
          .batch = 16,
          .learning_rate = 1e-3,
          .policy = "fp16_mixed",
          .loss_scale = loss_scale,
          .trackers = "first_overflow",
          .observe_every = 0};
}

/// The first step of a training that overflows; the last where none does.
StepRecord first_overflowing(const TrainConfig& config, const Dataset& dataset) {
  Trainer trainer(config, dataset);
  StepRecord record;
  while (trainer.steps_done() < config.steps && !record.overflow) record = trainer.step();
  return record;
}

TEST_CASE("a loss scale far too large overflows first next to the loss, in the backward pass", "[overflow]") {
  TrainConfig config = config_with("dynamic");
  config.scaler_options = {{"initial_scale", 0x1p30}};
  const StepRecord record = first_overflowing(config, small);
  CHECK(record.step == 1);
  CHECK(record.skipped);
  CHECK_FALSE(record.diverged);
  REQUIRE(record.overflow);
  REQUIRE(record.overflow->first_overflow);
  const FirstOverflow& first = *record.overflow->first_overflow;
  CHECK(first.pass == TrainingPass::backward);
  CHECK(first.cause == OverflowCause::cast);
  CHECK(first.source.tensor == "fc2");
  CHECK(first.source.what == "activation_gradient");
  CHECK(first.source.elements == 16 * 4);
  CHECK(first.source.max_abs > 65504);
  CHECK(first.source.max_abs <= 0x1p30f / 16);  // scale / batch times at most 1
  // The twenty before it are the forward pass's last, the newest at the end.
  const std::vector<TraceRecord>& trace = record.overflow->trace;
  REQUIRE(trace.size() == 20);
  CHECK(trace.back().tensor == "fc2");
  CHECK(trace.back().what == "activation");
  CHECK(std::all_of(trace.begin(), trace.end(), [](const TraceRecord& seen) { return seen.nonfinite == 0; }));
  CHECK(std::any_of(trace.begin(), trace.end(),
                    [](const TraceRecord& seen) { return seen.tensor == "bn2.variance"; }));
}

TEST_CASE("an input that FP16 does not hold is named at the step that meets it", "[overflow][known]") {
  const PlantedDataset planted(50, 1e6f);
  const StepRecord record = first_overflowing(config_with("8"), planted);
  REQUIRE(record.overflow);
  CHECK(record.step == planted.first_step(16, 0));
  CHECK(record.step > 1);
  CHECK(record.diverged);  // a constant scale takes the step nevertheless
  const FirstOverflow& first = record.overflow->first_overflow.value();
  CHECK(first.pass == TrainingPass::forward);
  CHECK(first.cause == OverflowCause::cast);
  CHECK(first.source.tensor == "input");
  // Pixels overflow whose planted value is at least 65520.
  const std::int64_t index = 50;
  const Batch batch = small.batch(Split::train, {&index, 1});
  std::int64_t beyond = 0;
  for (const float pixel : batch.inputs.values()) beyond += std::abs(pixel) * 1e6f >= 65520 ? 1 : 0;
  CHECK(first.source.nonfinite == beyond);
  CHECK(record.overflow->trace.empty());
}

TEST_CASE("a reduction that overflows is named with its layer and step", "[overflow][known]") {
  const PlantedDataset planted(50, 2000.0f);
  TrainConfig config = config_with("8");
  config.operations.sum_order = "fp16_sequential@bn1";
  const StepRecord record = first_overflowing(config, planted);
  REQUIRE(record.overflow);
  CHECK(record.step == planted.first_step(16, 0));
  const FirstOverflow& first = record.overflow->first_overflow.value();
  CHECK(first.pass == TrainingPass::forward);
  CHECK(first.cause == OverflowCause::reduction);
  CHECK(first.source.tensor == "bn1.mean");
  CHECK(first.source.nonfinite > 0);
  const std::vector<TraceRecord>& trace = record.overflow->trace;  // ..., conv1, then batch norm's weights
  REQUIRE(trace.size() >= 3);
  CHECK(trace[trace.size() - 3].tensor == "conv1");
  CHECK(trace[trace.size() - 3].max_abs > 1000);
  // bn2 sees what bn1 has normalised: the same reduction there does not overflow.
  config.operations.sum_order = "fp16_sequential@bn2";
  CHECK_FALSE(first_overflowing(config, planted).overflow);
}

TEST_CASE("an update that overflows is named with its parameter", "[overflow][known]") {
  TrainConfig config = config_with("1024");
  config.policy = "fp16_pure";  // epsilon is 0 in FP16: an element without a gradient is updated by 0 / 0
  const StepRecord record = first_overflowing(config, small);
  REQUIRE(record.overflow);
  CHECK(record.diverged);
  const FirstOverflow& first = record.overflow->first_overflow.value();
  CHECK(first.pass == TrainingPass::update);
  CHECK(first.source.what == "master_weight");
  CHECK(first.source.nonfinite > 0);
  CHECK_FALSE(record.overflow->trace.empty());
}

TEST_CASE("running an overflowing step again changes no number", "[overflow]") {
  TrainConfig config = config_with("dynamic");
  config.scaler_options = {{"initial_scale", 0x1p24}};
  config.roles.weight_gradient = "fp16/stochastic";
  TrainConfig untracked = config;
  untracked.trackers = "none";
  Trainer watched(config, small), unwatched(untracked, small);
  int overflowed = 0;
  for (int i = 0; i < 12; ++i) {
    const StepRecord record = watched.step();
    overflowed += record.overflow ? 1 : 0;
    CHECK(record.loss == unwatched.step().loss);
    CHECK(record.overflow.has_value() == record.skipped);
  }
  CHECK(overflowed > 1);
  CHECK(overflowed < 12);
  const SafetensorsFile one = watched.checkpoint(), other = unwatched.checkpoint();
  REQUIRE(one.tensors.size() == other.tensors.size());
  for (std::size_t i = 0; i < one.tensors.size(); ++i) {
    INFO(one.tensors[i].name);
    const auto a = one.tensors[i].array.values(), b = other.tensors[i].array.values();
    CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
}

TEST_CASE("a first overflow reads as a sentence", "[overflow]") {
  StepObservations seen;
  seen.first_overflow = {TrainingPass::backward,
                         OverflowCause::cast,
                         {.tensor = "conv2.weight",
                          .what = "weight_gradient",
                          .elements = 4608,
                          .nonfinite = 12,
                          .max_abs = 70000.0f}};
  seen.trace = {{.tensor = "conv2", .what = "activation_gradient", .elements = 9, .max_abs = 5.0f}};
  const Json record = overflow_json(seen);
  CHECK(record["before"].size() == 1);
  CHECK(record["before"][0]["tensor"] == "conv2");
  CHECK(record["pass"] == "backward");
  CHECK(overflow_in_words(3, record) ==
        "step 3: conv2.weight (weight gradient) was first, in the backward pass: 12 of 4608 beyond the "
        "format, largest 7e+04");
  CHECK(overflow_json({}).is_null());
}

}  // namespace
}  // namespace halfscope::first_overflow_test
