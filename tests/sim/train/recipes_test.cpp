// Recipes in training: the same bytes for any threads and after any interruption, and counts of their
// operands.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <halfscope/core/isa.hpp>

#include "sim/train/records.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/small_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::recipes_test {
namespace {

TrainConfig recipe_config(const char* policy, const char* operands = "") {
  TrainConfig config = small_config();
  config.policy = policy;
  config.steps = 12;
  config.operations.operands = operands;
  return config;
}

TEST_CASE("a recipe gives the same bytes for any threads and instruction set", "[operands][repeats]") {
  // Hadamard's transform, stochastic rounding and tiles; delayed scales; two scales to choose from.
  const TemporaryFolder temporary;
  for (const char* policy : {"nvfp4", "fp8_delayed", "nvfp4_4over6"}) {
    INFO(policy);
    const auto folder = temporary.path() / policy;
    const TrainConfig config = recipe_config(policy);
    const Records expected = run_in(folder / "one", config);
    CHECK(with_threads(2, [&] { return run_in(folder / "two", config); }) == expected);
    for (const Isa isa : available_isas()) {
      const ForcedIsa forced(isa);
      INFO(name_of(isa));
      CHECK(run_in(folder / std::string(name_of(isa)), config) == expected);
    }
    TrainConfig other = config;
    other.policy = "mxfp8";
    CHECK(run_in(folder / "other", other) != expected);
  }
}

TEST_CASE("a recipe that was stopped ends with the bytes of an unbroken run", "[operands]") {
  const TemporaryFolder temporary;
  for (const char* policy : {"fp8_delayed", "nvfp4"}) {
    INFO(policy);
    const TrainConfig config = recipe_config(policy);
    const Records expected = run_in(temporary.path() / policy / "whole", config);
    const RunFolder folder(temporary.path() / policy / "broken", {"experiment", "arm", 0});
    CHECK_THROWS_AS(run_training(parsed(config), small_dataset, folder, killed_at(9)), Killed);
    run_training(parsed(config), small_dataset, folder, ignore);
    CHECK(records_of(folder) == expected);
  }
}

TEST_CASE("a delayed scale takes in the largest magnitude of each step, and the next step uses it",
          "[operands]") {
  TrainConfig config = recipe_config("fp32", "forward.right=fp8_e4m3+delayed(history=2)@fc1");
  config.loss_scale = "none";
  Trainer trainer(config, small_dataset);
  for (int step = 0; step < 3; ++step) {
    const SafetensorsFile before = trainer.checkpoint();
    const auto weight = std::ranges::find(before.tensors, "model.fc1.weight", &NamedArray::name);
    REQUIRE(weight != before.tensors.end());
    float amax = 0;
    for (const float w : weight->array.values()) amax = std::max(amax, std::abs(w));
    (void)trainer.step();
    (void)trainer.evaluate();  // no part of the history
    const SafetensorsFile after = trainer.checkpoint();
    const auto state = std::ranges::find(after.tensors, "operand_scale.fc1.forward.right", &NamedArray::name);
    REQUIRE(state != after.tensors.end());
    CHECK(state->array.shape() == Shape{3});
    CHECK(state->array[1] == amax);
    CHECK(state->array[0] == 448 / std::max(state->array[1], state->array[2]));
  }
}

TEST_CASE("a checkpoint without the delayed scales of its policy is refused", "[operands]") {
  const TrainConfig config = recipe_config("fp8_delayed");
  Trainer trainer(config, small_dataset);
  (void)trainer.step();
  SafetensorsFile checkpoint = trainer.checkpoint();
  Trainer(config, small_dataset).restore(checkpoint);
  std::erase_if(checkpoint.tensors,
                [](const NamedArray& tensor) { return tensor.name.starts_with("operand_scale."); });
  check_says(message_of<InvalidArgument>([&] { Trainer(config, small_dataset).restore(checkpoint); }),
             {"lacks the delayed scales"});
}

TEST_CASE("a step's record counts each operand that has a format of its own", "[operands]") {
  TrainConfig config = recipe_config("mxfp4", "*=role@conv*, *=role@fc2");
  Trainer trainer(config, small_dataset);
  const StepRecord record = trainer.step();
  std::set<std::string> operands;
  for (const OperandCounters& operand : record.observations->operands) {
    operands.insert(operand.layer + ":" + to_string(operand.place));
    const BlockCounts& c = operand.counts;
    CHECK(c.elements > 0);
    CHECK(c.zero_blocks <= c.blocks);
    CHECK(c.clipped == 0);  // scales are rounded up
    CHECK(c.flushed > 0);
  }
  CHECK(operands == std::set<std::string>{"fc1:forward.left", "fc1:forward.right", "fc1:data_gradient.left",
                                          "fc1:data_gradient.right", "fc1:weight_gradient.left",
                                          "fc1:weight_gradient.right"});
  RecordText text;
  const Json json = append_record(text, record, nullptr);
  CHECK(json["operands"].size() == 6);
  CHECK(json["operands"][0]["operand"] == "forward.left");
  CHECK(json["operands"][0]["scales_log2"].size() == 2);

  config.policy = "fp32";
  config.operations.operands = "";
  Trainer plain(config, small_dataset);
  CHECK_FALSE(append_record(text, plain.step(), nullptr).contains("operands"));
}

TEST_CASE("observing the operands changes no number", "[operands]") {
  TrainConfig config = recipe_config("nvfp4_4over6");
  config.observe_every = 1;
  Trainer watched(config, small_dataset);
  config.observe_every = 0;
  Trainer unwatched(config, small_dataset);
  for (int step = 0; step < 3; ++step) {
    (void)watched.step();
    const float loss = unwatched.step().loss;
    if (step > 0) CHECK(loss > 0);
  }
  CHECK(watched.evaluate().loss == unwatched.evaluate().loss);
}

TEST_CASE("settings of a recipe's run make the same run", "[operands]") {
  const RunSettings settings = parsed(recipe_config("nvfp4", "forward=mxfp8_e4m3@fc1, *=role@fc2"));
  const RunSettings again = parsed(settings.config);
  CHECK(again.policy.operands == settings.policy.operands);
  CHECK(to_json(again.config) == to_json(settings.config));
  CHECK(to_string(parsed(recipe_config("fp8_deepseek")).policy.products) == "fp32_chunked(128)");
  CHECK(parsed(recipe_config("fp16_mixed")).config.operations.operands.empty());
}

std::string refusal(const TrainConfig& config) {
  return message_of<InvalidArgument>([&] { (void)parsed(config); });
}

TEST_CASE("what a recipe cannot have is refused in one line", "[operands]") {
  TrainConfig config = recipe_config("mxfp8");
  config.device = "cuda";
  config.execution = "native";
  check_says(refusal(config), {"execution = native", "operands = ", "give execution = emulated"});
  config = recipe_config("mxfp8");
  config.operations.order = "bf16_tensor_core(hopper)";
  check_says(refusal(config), {"order = bf16_tensor_core(hopper)", "fp32_fused"});
  check_says(message_of<InvalidArgument>(
                 [] { Trainer(recipe_config("mxfp8", "*=role@fc9"), small_dataset).try_example(); }),
             {"operands = *=role@fc9", "no layer is called that (one of: conv1, "});
  check_says(message_of<InvalidArgument>([] {
               TrainConfig wrong;
               set_field(wrong, "operands", "forward=mxfp9");
             }),
             {"operands = 'forward=mxfp9'", "mxfp9"});
}

}  // namespace
}  // namespace halfscope::recipes_test
