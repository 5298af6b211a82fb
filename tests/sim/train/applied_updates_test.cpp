// Updates of stored weights: decays that move nothing, and the way along the intended update.
#include "sim/train/applied_updates.hpp"

#include <cmath>

#include <halfscope/core/random.hpp>
#include <halfscope/format/round.hpp>

#include "sim/train/trainer.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::applied_updates_test {
namespace {

/// Counters of the decays of BF16 weights whose logarithms are uniform, at a share `decay` of each.
UpdateCounters decays_of(double decay) {
  constexpr std::size_t weights = 1 << 16;
  ParameterStore store;
  Parameter& w = store.add("w", Array::zeros({weights}));
  for (std::size_t i = 0; i < weights; ++i)
    w.master[i] = round(std::exp2(8 * RandomStream{.site = 3}.uniform(i) - 12), {.format = bf16});
  TrackerList none;
  Caster caster(bf16_no_master_policy(), 0, none);
  StepObservations observations;
  observations.updates.push_back({.tensor = "w"});
  AppliedUpdates updates(caster, decay, &observations);
  updates.before(w);
  updates.intended(w);
  updates.applied(w);
  updates.write();
  return observations.updates.front();
}

TEST_CASE("a decay below half the spacing of BF16 moves only the small significands", "[updates][known]") {
  const auto lost_share = [](double decay) {
    const UpdateCounters counters = decays_of(decay);
    CHECK(counters.decays == 1 << 16);
    return static_cast<double>(counters.lost_decays) / static_cast<double>(counters.decays);
  };
  CHECK(lost_share(0x1.8p-10) == 1);
  // log2(2^-8 / decay) of the weights between 2^-9 and 2^-8; a weight of BF16 may be a power of two.
  CHECK(lost_share(0.002344) == Approx(std::log2(0x1p-8 / 0.002344)).margin(0.01));
  CHECK(lost_share(0.003516) == Approx(std::log2(0x1p-8 / 0.003516)).margin(0.01));
  CHECK(lost_share(0x1.8p-8) == 0);
  CHECK(decays_of(0).decays == 0);
}

/// The projection of a classifier's applied updates on the intended ones, over all steps of a training: what
/// Kahan's sum holds back in one step it adds in a later one.
double projection_in(const std::string& policy, double rate) {
  TrainConfig config{.steps = 80, .batch = 16, .optimizer = "adam", .learning_rate = rate};
  config.schedule = "constant";
  config.policy = policy;
  config.observe_every = 1;
  config.observe_roles = "weight_gradient";
  const SmallDataset dataset;
  Trainer trainer(config, dataset);
  UpdateProjection sum;
  for (std::int64_t step = 0; step < config.steps; ++step) {
    const StepRecord record = trainer.step();
    for (const UpdateCounters& update : record.observations->updates) {
      REQUIRE(update.projection.has_value());
      sum.along += update.projection->along;
      sum.square += update.projection->square;
    }
  }
  return sum.along / sum.square;
}

TEST_CASE("small updates of BF16 weights get along when they are compensated, and hardly otherwise",
          "[updates]") {
  CHECK(projection_in("bf16_no_master", 1e-4) < 0.6);
  for (const char* policy : {"bf16_stochastic", "bf16_kahan", "bf16_two_components"}) {
    INFO(policy);
    CHECK(projection_in(policy, 1e-4) == Approx(1).margin(0.1));
  }
}

TEST_CASE("FP32 weights have no projection, and their decays are asked about all the same", "[updates]") {
  TrainConfig config{.steps = 1, .batch = 16, .optimizer = "adamw", .policy = "fp32"};
  config.optimizer_options["weight_decay"] = 0.1;
  const SmallDataset dataset;
  Trainer trainer(config, dataset);
  const StepRecord record = trainer.step();
  REQUIRE_FALSE(record.observations->updates.empty());
  for (const UpdateCounters& update : record.observations->updates)
    CHECK_FALSE(update.projection.has_value());
  // 1e-3 * 0.1 of a weight is below half of FP16's spacing, 2^-11 to 2^-12 of it.
  CHECK(record.observations->updates.front().decays > 0);
  CHECK(record.observations->updates.front().lost_decays == record.observations->updates.front().decays);
}

}  // namespace
}  // namespace halfscope::applied_updates_test
