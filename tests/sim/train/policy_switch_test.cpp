// A run whose policy changes at a step.
#include "sim/train/policy_switch.hpp"

#include "tests/sim/small_runs.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::policy_switch_test {
namespace {

TrainConfig fp32_config() {
  TrainConfig config = small_config();
  config.policy = "fp32";
  config.loss_scale = "none";
  config.steps = 12;
  return config;
}

std::vector<float> losses_of(const TrainConfig& config) {
  Trainer trainer(config, small_dataset);
  std::vector<float> losses;
  for (std::int64_t i = 0; i < config.steps; ++i) losses.push_back(trainer.step().loss);
  return losses;
}

TEST_CASE("a policy holds from its step on", "[policy_switch]") {
  TrainConfig config = fp32_config();
  const std::vector<float> fp32 = losses_of(config);
  config.policy_from = "step=6, policy=bf16_mixed";
  const std::vector<float> switched = losses_of(config);
  CHECK(std::equal(fp32.begin(), fp32.begin() + 5, switched.begin()));
  CHECK(fp32[5] != switched[5]);
  // From the first step on it is the other policy's run, whose master copy is FP32 too.
  config.policy_from = "step=1, policy=bf16_mixed";
  const std::vector<float> from_the_start = losses_of(config);
  config.policy_from = "";
  config.policy = "bf16_mixed";
  CHECK(losses_of(config) == from_the_start);
}

TEST_CASE("a run with a switch resumes with the same bytes, on either side of it", "[policy_switch][run]") {
  const TemporaryFolder temporary;
  TrainConfig config = fp32_config();
  config.policy_from = "policy=nvfp4, step=8";
  const Records expected = run_in(temporary.path() / "whole", config);
  for (const std::int64_t stop : {7, 8, 11}) {
    INFO(stop);
    const RunFolder folder(temporary.path() / std::to_string(stop), {"experiment", "arm", 0});
    CHECK_THROWS_AS(run_training(parsed(config), small_dataset, folder, killed_at(stop)), Killed);
    run_training(parsed(config), small_dataset, folder, ignore);
    CHECK(records_of(folder) == expected);
  }
}

TEST_CASE("weights and the optimizer's state stay as they are stored", "[policy_switch]") {
  const PolicySwitch later = parse_policy_switch("step=3, policy=fp16_pure", bf16_kahan_policy());
  CHECK(later.step == 3);
  CHECK(later.policy.quantizer(Role::activation).format == fp16);
  CHECK(later.policy.quantizer(Role::master_weight).format == bf16);
  CHECK(later.policy.quantizer(Role::optimizer_state).is_identity());
  CHECK(later.policy.weight_sum == WeightSum::kahan);
}

TEST_CASE("a switch without a step or a policy is refused", "[policy_switch]") {
  const auto message = [](const char* text) {
    return message_of<InvalidArgument>([&] { (void)parse_policy_switch(text, {}); });
  };
  for (const char* text : {"500", "step=5", "policy=fp32", "step=0, policy=fp32", "step=x, policy=fp32",
                           "step=5, policy=fp32, arm=2"})
    check_says(message(text), {"policy_from", text, "step=N, policy=NAME"});
  check_says(message("step=5, policy=bf61_mixed"), {"bf61_mixed", "bf16_mixed"});
}

}  // namespace
}  // namespace halfscope::policy_switch_test
