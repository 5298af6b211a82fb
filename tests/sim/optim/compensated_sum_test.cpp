// Weights without an FP32 master copy that remember what rounding has lost.
#include "sim/optim/compensated_sum.hpp"

#include <cmath>

#include <halfscope/format/round.hpp>

#include "sim/train/trainer.hpp"
#include "tests/sim/small_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::compensated_sum_test {
namespace {

constexpr Quantizer narrow{.format = bf16};

using Add = CompensatedWeight (*)(const CompensatedWeight&, float, const Quantizer&);

CompensatedWeight added(Add add, float update, int times) {
  CompensatedWeight w{.weight = 1};
  for (int i = 0; i < times; ++i) w = add(w, update, narrow);
  return w;
}

TEST_CASE("updates below half an ulp add up", "[optimizer]") {
  CHECK(round(1 + 0x1p-12f, narrow) == 1);
  for (const Add add : {kahan_sum, two_component_sum}) {
    const CompensatedWeight first = add({.weight = 1}, 0x1p-12f, narrow);
    CHECK(first.weight == 1);
    CHECK(first.rest == 0x1p-12f);
    // 32 of them are one ulp of BF16 at 1; 16 are half of it, and the tie goes to even.
    CHECK(added(add, 0x1p-12f, 32).weight + added(add, 0x1p-12f, 32).rest == 1 + 0x1p-7f);
    CHECK(added(add, 0x1p-12f, 1024).weight == 1.25f);
    CHECK(added(add, -0x1p-12f, 1024).weight == 0.75f);
  }
}

TEST_CASE("a weight's two components are the FP32 weight to 16 bits", "[optimizer]") {
  ParameterStore store;
  Parameter& p = store.add("p", Array::from({2}, {1.2345678f, -3e-5f}));
  const float before = p.master[0];
  CompensatedWeights weights(store, WeightSum::two_components, narrow);
  weights.begin();
  for (std::size_t i = 0; i < 2; ++i) p.master[i] = round(p.master[i], narrow);
  CHECK(std::abs(p.master[0] + weights.rests()[0][0] - before) <= 0x1p-17f);
  CHECK(weights.rests()[0][0] == round(weights.rests()[0][0], narrow));
  weights.before_update(0);
  p.master[0] += 0x1p-10f;
  weights.after_update(0);
  CHECK(p.master[0] == round(p.master[0], narrow));
  CHECK(std::abs(p.master[0] + weights.rests()[0][0] - (before + 0x1p-10f)) <= 0x1p-16f);
  CHECK(CompensatedWeights(store, WeightSum::plain, narrow).empty());
}

TEST_CASE("a run with compensated weights resumes with the same bytes", "[optimizer][run]") {
  const TemporaryFolder temporary;
  for (const char* policy : {"bf16_kahan", "bf16_two_components", "bf16_stochastic"}) {
    INFO(policy);
    TrainConfig config = small_config();
    config.policy = policy;
    config.steps = 12;
    const Records expected = run_in(temporary.path() / policy / "whole", config);
    const RunFolder folder(temporary.path() / policy / "broken", {"experiment", "arm", 0});
    CHECK_THROWS_AS(run_training(parsed(config), small_dataset, folder, killed_at(9)), Killed);
    run_training(parsed(config), small_dataset, folder, ignore);
    CHECK(records_of(folder) == expected);
  }
  TrainConfig config = small_config();
  config.policy = "bf16_kahan";
  config.device = "cuda";
  check_says(message_of<InvalidArgument>([&] { (void)parsed(config); }),
             {"weight_sum = kahan", "device = cpu"});
}

}  // namespace
}  // namespace halfscope::compensated_sum_test
