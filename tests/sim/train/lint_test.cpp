// Constants that die: configs beside the findings that they must, and must not, give.
#include "sim/train/lint.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

#include "tests/support/catch.hpp"

namespace halfscope::lint_test {
namespace {

struct LintCase {
  const char* name;
  TrainConfig config;
  std::vector<std::string> found;  // findings in order
};

const std::vector<LintCase>& cases() {
  static const std::vector<LintCase> all{
      {"fp32", {}, {}},
      {"fp32 with a huge scale", {.loss_scale = "1e30"}, {}},
      {"mixed precision", {.policy = "fp16_mixed", .loss_scale = "1024"}, {}},
      {"mixed precision, PyTorch's scale", {.policy = "fp16_mixed", .loss_scale = "dynamic"}, {}},
      {"mixed precision, tiny rate: the master copy keeps it",
       {.learning_rate = 1e-9, .policy = "fp16_mixed", .loss_scale = "1024"},
       {}},
      {"pure FP16 with Adam", {.policy = "fp16_pure"}, {"epsilon", "square of a gradient"}},
      {"pure FP16 with AdamW",
       {.optimizer = "adamw", .policy = "fp16_pure"},
       {"epsilon", "square of a gradient"}},
      {"an epsilon that FP16 holds",
       {.optimizer_options = {{"epsilon", 1e-4}}, .policy = "fp16_pure"},
       {"square of a gradient"}},
      {"no epsilon",
       {.optimizer_options = {{"epsilon", 0}}, .policy = "fp16_pure"},
       {"square of a gradient"}},
      {"a tie rounds to zero",
       {.optimizer_options = {{"epsilon", 0x1p-25}}, .policy = "fp16_pure"},
       {"epsilon", "square of a gradient"}},
      {"just above the tie",
       {.optimizer_options = {{"epsilon", 0x1.01p-25}}, .policy = "fp16_pure"},
       {"square of a gradient"}},
      {"Adam in bf16: its range is FP32's",
       {.policy = "fp16_pure", .roles = {.master_weight = "fp32", .optimizer_state = "bf16"}},
       {"beta2"}},
      {"beta2 beyond FP16's spacing below 1",
       {.optimizer_options = {{"beta2", 0.9999}, {"epsilon", 1e-4}}, .policy = "fp16_pure"},
       {"beta2", "square of a gradient"}},
      {"1 - beta2 below the smallest number",
       {.optimizer_options = {{"beta2", 0.99999999}, {"epsilon", 1e-4}}, .policy = "fp16_pure"},
       {"beta2", "1 - beta2", "square of a gradient"}},
      {"a rate of zero in FP16",
       {.learning_rate = 1e-8, .optimizer_options = {{"epsilon", 1e-4}}, .policy = "fp16_pure"},
       {"learning_rate", "square of a gradient", "1 + learning_rate"}},
      {"the first step of a warm-up",
       {.learning_rate = 1e-3,
        .warmup_steps = 100'000,
        .optimizer_options = {{"epsilon", 1e-4}},
        .policy = "fp16_pure"},
       {"learning_rate / warmup_steps", "square of a gradient"}},
      {"no master copy, large updates", {.learning_rate = 1e-3, .policy = "fp16_no_master"}, {}},
      {"no master copy, small updates",
       {.learning_rate = 1e-4, .policy = "fp16_no_master"},
       {"1 + learning_rate"}},
      {"no master copy, sgd: an update may be any size",
       {.optimizer = "sgd", .learning_rate = 1e-4, .policy = "fp16_no_master"},
       {}},
      {"sgd in FP16, a rate that leaves normal gradients something",
       {.optimizer = "sgd", .learning_rate = 0.1, .policy = "fp16_pure"},
       {}},
      {"sgd in FP16, a small rate",
       {.optimizer = "sgd", .learning_rate = 1e-4, .policy = "fp16_pure"},
       {"learning_rate * gradient"}},
      {"momentum that rounds to 1",
       {.optimizer = "sgd",
        .learning_rate = 0.1,
        .optimizer_options = {{"momentum", 0.9999}},
        .policy = "fp16_pure"},
       {"momentum"}},
      {"Adagrad in FP16",
       {.optimizer = "adagrad", .policy = "fp16_pure"},
       {"epsilon", "square of a gradient"}},
      {"no master copy, Adagrad's first update",
       {.optimizer = "adagrad", .learning_rate = 1e-4, .policy = "fp16_no_master"},
       {"1 + learning_rate"}},
      {"RMSProp in FP16",
       {.optimizer = "rmsprop", .policy = "fp16_pure"},
       {"epsilon", "square of a gradient"}},
      {"RMSProp with decays that FP16 rounds to 1",
       {.optimizer = "rmsprop",
        .optimizer_options = {{"beta2", 0.9999}, {"epsilon", 1e-3}, {"momentum", 0.9999}},
        .policy = "fp16_pure"},
       {"momentum", "beta2", "square of a gradient"}},
      {"no master copy, RMSProp: the momentum gathers ten updates",
       {.optimizer = "rmsprop", .learning_rate = 1e-4, .policy = "fp16_no_master"},
       {}},
      {"no master copy, RMSProp without momentum",
       {.optimizer = "rmsprop",
        .learning_rate = 1e-4,
        .optimizer_options = {{"momentum", 0}},
        .policy = "fp16_no_master"},
       {"1 + learning_rate / (1 - momentum)"}},
      {"no master copy, a decay that no weight feels",
       {.optimizer = "adamw",
        .learning_rate = 1e-3,
        .optimizer_options = {{"weight_decay", 0.01}},
        .policy = "fp16_no_master"},
       {"1 - learning_rate * weight_decay"}},
      {"no master copy, a decay that every weight feels",
       {.optimizer = "adamw",
        .learning_rate = 1e-2,
        .optimizer_options = {{"weight_decay", 0.1}},
        .policy = "fp16_no_master"},
       {}},
      {"Muon in FP16, with a momentum that it rounds to 1",
       {.optimizer = "muon", .optimizer_options = {{"momentum", 0.9999}}, .policy = "fp16_pure"},
       {"epsilon", "square of a gradient", "momentum"}},
      {"StableAdamW without a master copy, a decay that no weight feels",
       {.optimizer = "stable_adamw",
        .learning_rate = 1e-3,
        .optimizer_options = {{"weight_decay", 0.01}},
        .policy = "fp16_no_master"},
       {"1 - learning_rate * weight_decay"}},
      {"a constant scale beyond FP16",
       {.batch = 64, .policy = "fp16_mixed", .loss_scale = "4194304"},
       {"loss scale * loss_weight / batch"}},
      {"the same scale on a larger batch",
       {.batch = 128, .policy = "fp16_mixed", .loss_scale = "4194304"},
       {}},
      {"a loss too small for FP16",
       {.batch = 64, .policy = "fp16_mixed", .loss_weight = 1e-7, .loss_scale = "1"},
       {"loss scale * loss_weight / batch"}},
      {"the same loss, scaled",
       {.batch = 64, .policy = "fp16_mixed", .loss_weight = 1e-7, .loss_scale = "65536"},
       {}},
  };
  return all;
}

TEST_CASE("the lint finds the constants that die, and no others", "[lint]") {
  for (const LintCase& entry : cases()) {
    INFO(entry.name);
    std::vector<std::string> found;
    for (const Finding& finding : lint(parsed(entry.config))) {
      found.push_back(finding.what);
      CHECK_FALSE(finding.consequence.empty());
      CHECK_FALSE(finding.remedy.empty());
      CHECK(finding.rounded != finding.value);
    }
    CHECK(found == entry.found);
  }
}

TEST_CASE("a finding says what, where, what comes of it and what to do", "[lint]") {
  const std::vector<Finding> found = lint(parsed({.policy = "fp16_pure"}));
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].value == 1e-8);
  CHECK(found[0].rounded == 0);
  CHECK(found[0].format == "fp16");
  CHECK(to_string(found[0]) ==
        "epsilon = 1e-08 is 0 in fp16: an element without a gradient is updated by 0 / 0, which is NaN; give "
        "epsilon=6e-08 or more, or give optimizer_state=fp32");
  CHECK(to_json(found[0])["rounded"] == 0);
  const std::vector<Finding> beyond = lint(parsed({.policy = "fp16_mixed", .loss_scale = "1e9"}));
  REQUIRE(beyond.size() == 1);
  CHECK(to_json(beyond[0])["rounded"].is_null());
  CHECK(to_string(beyond[0]).find("is infinite in fp16: a wrong prediction") != std::string::npos);
}

}  // namespace
}  // namespace halfscope::lint_test
