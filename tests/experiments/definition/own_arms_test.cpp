// Arms from the command line.
#include "experiments/definition/own_arms.hpp"

#include "experiments/definition/arm_config.hpp"
#include "tests/experiments/tiny_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::own_arms_test {
namespace {

TEST_CASE("an arm in one word has a name and settings", "[own_arms]") {
  const Arm arm = parse_arm("s4:policy=fp16_mixed,loss_scale=4,observe_roles=weight,activation");
  CHECK(arm.name == "s4");
  CHECK(arm.settings ==
        Settings{{"policy", "fp16_mixed"}, {"loss_scale", "4"}, {"observe_roles", "weight,activation"}});
  for (const char* text : {"", "s4", "s4:", "s4:x", "s4:=3", ":a"})
    check_says(message_of<InvalidArgument>([&] { (void)parse_arm(text); }), {"KEY=VALUE"});
}

TEST_CASE("rules of operands are one setting", "[own_arms]") {
  const Arm arm =
      parse_arm("own:policy=nvfp4,operands=*=role@fc2,forward.right=mxfp4,matmul.forward=fp8_e4m3,steps=5");
  CHECK(arm.settings == Settings{{"policy", "nvfp4"},
                                 {"operands", "*=role@fc2,forward.right=mxfp4,matmul.forward=fp8_e4m3"},
                                 {"steps", "5"}});
}

TEST_CASE("an added arm starts from another where it says so", "[own_arms]") {
  Experiment experiment = tiny();
  add_arm(experiment, parse_arm("s4:like=fp16_mixed,loss_scale=4"));
  const TrainConfig small = arm_config(experiment, experiment.arms.back(), RunSize::small);
  CHECK((small.policy == "fp16_mixed" && small.loss_scale == "4"));
  add_arm(experiment, parse_arm("plain:loss_scale=4"));
  CHECK(arm_config(experiment, experiment.arms.back(), RunSize::small).policy == "fp32");
}

TEST_CASE("an arm that cannot be added is refused", "[own_arms]") {
  const auto refusal = [](const std::string& text) {
    Experiment experiment = tiny();
    return message_of<InvalidArgument>([&] { add_arm(experiment, parse_arm(text)); });
  };
  check_says(refusal("fp32:steps=1"), {"fp32", "another"});
  check_says(refusal("a:stps=1"), {"arm a", "did you mean 'steps'"});
  check_says(refusal("a:steps=0"), {"arm a", "steps = '0'"});
  check_says(refusal("a:like=fp23"), {"did you mean 'fp32'"});
  for (const std::string& name :
       {std::string(".."), std::string("a/b"), std::string("a\n"), std::string(101, 'a'), std::string()})
    check_says(refusal(name + ":steps=1"), {"arm name", "printable"});
  for (const std::string name : {"summary.json", "experiment.toml", "sweep.json", "report.txt", "runs.jsonl"})
    check_says(refusal(name + ":steps=1"), {"arm name '" + name + "'", "a file of the results", "another"});
}

TEST_CASE("a verdict is for the arms that are the base's", "[own_arms]") {
  Experiment experiment = tiny();
  add_arm(experiment, parse_arm("s4:loss_scale=4"));
  take_verdict(experiment, tiny());
  CHECK(experiment.verdict_arms == std::vector<std::string>{"fp32", "fp16_mixed"});
  experiment.arms.erase(experiment.arms.begin());
  take_verdict(experiment, tiny());
  CHECK(experiment.verdict_arms == std::vector<std::string>{"fp16_mixed"});
  experiment.settings.emplace_back("batch", "5");
  take_verdict(experiment, tiny());
  CHECK(experiment.verdict.empty());
  CHECK_FALSE(is_same(experiment, tiny()));
  CHECK(is_same(tiny(), tiny()));
}

}  // namespace
}  // namespace halfscope::own_arms_test
