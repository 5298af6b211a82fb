// The FP32 reference: errors that are known, none where there is nothing to round, and no number changed.
#include "sim/train/fp32_reference.hpp"

#include <cmath>

#include "sim/train/trainer.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::fp32_reference_test {
namespace {

const SmallDataset small;

TrainConfig config_with(const std::string& policy, const std::string& loss_scale) {
  return {.steps = 6,
          .batch = 16,
          .learning_rate = 1e-3,
          .policy = policy,
          .loss_scale = loss_scale,
          .trackers = "none",
          .observe_every = 0,
          .fp32_reference_every = 3};
}

const Fp32Comparison* find(const std::vector<Fp32Comparison>& records, const std::string& tensor, Role role) {
  for (const Fp32Comparison& record : records) {
    if (record.tensor == tensor && record.role == role) return &record;
  }
  return nullptr;
}

TEST_CASE("an FP32 reference of casts alone has the error of the casts", "[fp32_reference]") {
  // 1 + 2^-11 is 1 in FP16, 2^-26 is 0; 3 and 4 stay. A gradient carries a scale of 4.
  const std::vector<float> values{1.0f + 0x1p-11f, 3.0f, 4.0f, 0x1p-26f};
  const std::vector<double> rounded{1, 3, 4, 0};
  const RepeatStep step = [&](Caster& caster, double loss_scale) {
    Array activation = Array::from({4}, {values[0], values[1], values[2], values[3]});
    caster.cast(activation, "x", Role::activation, {});
    Array gradient = activation.clone();
    const auto scale = static_cast<float>(loss_scale);
    for (std::size_t i = 0; i < 4; ++i) gradient[i] = scale * values[i];
    caster.cast(gradient, "x", Role::activation_gradient, {});
    caster.cast(gradient.values().first(2), "parts", Role::weight_gradient, {}, 0);
    caster.cast(gradient.values().last(2), "parts", Role::weight_gradient, {}, 1);
    Array zero = Array::zeros({4});
    caster.cast(zero, "nothing", Role::activation, {});
    caster.cast(activation, "w", Role::weight, {});
  };
  const auto records = compare_with_fp32(fp16_mixed_policy(), 0, {.step = 1, .loss_scale = 4}, step);
  REQUIRE(records.size() == 4);  // weights are not compared
  double error = 0, exact = 0, own = 0, product = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const double x32 = double{values[i]};
    error += (rounded[i] - x32) * (rounded[i] - x32);
    exact += x32 * x32;
    own += rounded[i] * rounded[i];
    product += rounded[i] * x32;
  }
  const Fp32Comparison* activation = find(records, "x", Role::activation);
  REQUIRE(activation != nullptr);
  CHECK(activation->relative_error.value() == Approx(std::sqrt(error / exact)));
  CHECK(activation->cosine.value() == Approx(product / std::sqrt(exact * own)));
  // At a scale of 4 the last element is the smallest subnormal: only the first one's error is left.
  const double first = 0x1p-11 / std::sqrt(exact);
  CHECK(find(records, "x", Role::activation_gradient)->relative_error.value() == Approx(first));
  CHECK(find(records, "parts", Role::weight_gradient)->relative_error.value() == Approx(first));
  CHECK_FALSE(find(records, "nothing", Role::activation)->relative_error);
}

TEST_CASE("the FP32 reference of an FP32 run is itself", "[fp32_reference]") {
  Trainer trainer(config_with("fp32", "1024"), small);
  const StepRecord record = trainer.step();
  CHECK(record.fp32_reference.size() > 10);
  for (const Fp32Comparison& entry : record.fp32_reference) {
    INFO(entry.tensor << " " << name_of(entry.role));
    CHECK(entry.relative_error.value_or(0) == 0);
    CHECK(entry.cosine.value_or(1) == Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("mixed precision strays from its FP32 reference by FP16's precision, more without a loss scale",
          "[fp32_reference]") {
  const auto weight_error = [](const char* scale) {
    TrainConfig config = config_with("fp16_mixed", scale);
    config.loss_weight = 0x1p-16;
    Trainer trainer(config, small);
    const StepRecord record = trainer.step();
    const Fp32Comparison* input = find(record.fp32_reference, "input", Role::activation);
    REQUIRE(input != nullptr);
    CHECK(input->relative_error.value() > 0x1p-14);
    CHECK(input->relative_error.value() < 0x1p-11);  // half a unit in the last place at most
    return find(record.fp32_reference, "fc1.weight", Role::weight_gradient)->relative_error.value_or(1);
  };
  CHECK(weight_error("65536") < 0.02);
  CHECK(weight_error("1") > 0.2);
}

TEST_CASE("fp32_references come when they are due, change no number and do not depend on threads",
          "[fp32_reference]") {
  TrainConfig config = config_with("fp16_mixed", "1024"), without = config;
  without.fp32_reference_every = 0;
  Trainer one(config, small), two(config, small), plain(without, small);
  for (std::int64_t step = 1; step <= 6; ++step) {
    const StepRecord record = one.step();
    CHECK(record.fp32_reference.empty() == (step != 1 && step != 3 && step != 6));
    CHECK(record.loss == plain.step().loss);
    const StepRecord threaded = with_threads(2, [&] { return two.step(); });
    REQUIRE(record.fp32_reference.size() == threaded.fp32_reference.size());
    for (std::size_t i = 0; i < record.fp32_reference.size(); ++i) {
      CHECK(record.fp32_reference[i].tensor == threaded.fp32_reference[i].tensor);
      CHECK(record.fp32_reference[i].relative_error == threaded.fp32_reference[i].relative_error);
      CHECK(record.fp32_reference[i].cosine == threaded.fp32_reference[i].cosine);
    }
  }
  CHECK(one.evaluate().loss == plain.evaluate().loss);
}

}  // namespace
}  // namespace halfscope::fp32_reference_test
