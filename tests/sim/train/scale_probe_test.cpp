// Probes of weight gradients: their scales, their errors, and that training goes on as without them.
#include "sim/train/scale_probe.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

#include "sim/train/trainer.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::scale_probe_test {
namespace {

const SmallDataset small;

TrainConfig config_with(const std::string& policy, const std::string& scales) {
  return {.steps = 6,
          .batch = 16,
          .learning_rate = 1e-3,
          .policy = policy,
          .loss_weight = 0x1p-16,
          .loss_scale = "1024",
          .trackers = "none",
          .observe_every = 0,
          .probes = {.scales = scales, .every = 4}};
}

TEST_CASE("loss scales are numbers and powers of two between commas", "[scale_probe]") {
  CHECK(parse_scales("").empty());
  CHECK(parse_scales("8") == std::vector<double>{8});
  CHECK(parse_scales("0.5,2^10,2^-3,1e4") == std::vector<double>{0.5, 1024, 0.125, 10000});
  for (const char* text : {"0", "-1", "1,", ",1", "2^", "2^200", "nan", "8x", "1 2"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_scales(text), InvalidArgument);
  }
  TrainConfig config;
  CHECK(message_of<InvalidArgument>([&] {
          set_field(config, "probe_scales", "1,many");
        }).find("'many' is no loss scale") != std::string::npos);
}

TEST_CASE("probes come when they are due and change no number", "[scale_probe]") {
  TrainConfig config = config_with("fp16_mixed", "1,2^16,2^40"), without = config;
  without.probes.scales = "";
  Trainer one(config, small), two(config, small), plain(without, small);
  for (std::int64_t step = 1; step <= 6; ++step) {
    const StepRecord record = one.step(), other = plain.step();
    CHECK(record.probes.size() == (step == 1 || step == 4 ? 3 : 0));
    CHECK(record.loss == other.loss);
    CHECK(record.gradients->max_abs == other.gradients->max_abs);
    const StepRecord threaded = with_threads(2, [&] { return two.step(); });
    for (std::size_t i = 0; i < record.probes.size(); ++i) {
      CHECK(to_json(record.probes[i]) == to_json(threaded.probes[i]));
    }
  }
  CHECK(one.evaluate().loss == plain.evaluate().loss);
}

TEST_CASE("a probe at the run's own scale is its FP32 reference", "[scale_probe]") {
  TrainConfig config = config_with("fp16_mixed", "1024");
  config.fp32_reference_every = 1;
  const StepRecord record = Trainer(config, small).step();
  REQUIRE(record.probes.size() == 1);
  std::size_t compared = 0;
  for (const Fp32Comparison& entry : record.fp32_reference) {
    if (entry.role != Role::weight_gradient) continue;
    const Fp32Comparison& probed = record.probes[0].weight_gradients.at(compared++);
    CHECK(probed.tensor == entry.tensor);
    CHECK(probed.relative_error == entry.relative_error);
  }
  CHECK(compared == record.probes[0].weight_gradients.size());
}

TEST_CASE("an FP32 run probes mixed precision: large errors below, infinite ones above", "[scale_probe]") {
  const StepRecord record = Trainer(config_with("fp32", "1,2^16,2^40"), small).step();
  REQUIRE(record.probes.size() == 3);
  CHECK(record.probes[0].error().value() > 0.2);
  CHECK(record.probes[1].error().value() < 0.02);
  CHECK(std::isinf(record.probes[2].error().value()));
  const Json overflowed = to_json(record.probes[2]);
  CHECK(overflowed["error"].is_null());
  CHECK(overflowed["finite"] == false);
  TrainConfig config = config_with("fp32", "2^16");
  config.probes.policy = "fp32";
  CHECK(Trainer(config, small).step().probes[0].error().value() == 0);
}

TEST_CASE("the error of a probe is the median over its tensors", "[scale_probe]") {
  ScaleProbe probe;
  CHECK_FALSE(probe.error().has_value());
  for (const double error : {0.5, 0.1, 0.3}) probe.weight_gradients.push_back({"t", {}, error, {}});
  probe.weight_gradients.push_back({"zero", {}, std::nullopt, {}});
  CHECK(probe.error() == 0.3);
  probe.weight_gradients.push_back({"t", {}, 0.2, {}});
  CHECK(probe.error() == Approx(0.25));
}

}  // namespace
}  // namespace halfscope::scale_probe_test
