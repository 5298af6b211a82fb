// The tape and the cast: where numbers are rounded, who sees them, and in which order gradients are added.
#include "sim/tape.hpp"

#include "sim/layers/layers.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::tape_test {
namespace {

/// Writes down what it is shown.
class Observer final : public Tracker {
 public:
  explicit Observer(std::vector<std::string>& seen) : seen_(seen) {}
  [[nodiscard]] CastDetail watches_casts(Role) const override { return CastDetail::counters; }
  void on_cast(const CastEvent& event, StepObservations&) override {
    seen_.push_back(std::string(event.site.tensor) + ":" + std::string(name_of(event.site.role)) + ":" +
                    std::to_string(static_cast<int>(event.site.scale)));
  }

 private:
  std::vector<std::string>& seen_;
};

PrecisionPolicy all_half() {
  return fp16_mixed_policy();
}

TEST_CASE("values are rounded in forward and gradients in backward, once each, in order", "[tape]") {
  std::vector<std::string> seen;
  TrackerList trackers;
  trackers.push_back(std::make_unique<Observer>(seen));
  Caster caster(all_half(), 0, trackers);
  StepObservations observations;
  caster.begin_step({.step = 1, .loss_scale = 8, .observations = &observations});
  ParameterStore store;
  Parameter& p = store.add("p", Array::from({1}, {1.0f + 0x1p-20f}));
  Tape tape(caster, Phase::training);
  const TensorRef w = tape.parameter(p);
  CHECK(tape.value(w)[0] == 1.0f);
  CHECK(p.master[0] == 1.0f + 0x1p-20f);
  const TensorRef y =
      tape.record({.name = "y", .value = Array::from({1}, {0x1p-26f}), .backward = [w](Tape& t, Array g) {
                     t.add_gradient(w, std::move(g));
                   }});
  CHECK(tape.value(y)[0] == 0.0f);
  const TensorRef z = relu(tape, "z", y);
  const TensorRef loss = tape.record({.name = "loss",
                                      .value = Array::from({}, {0x1p-26f}),
                                      .rounds = Rounds::no,
                                      .backward = [y](Tape& t, Array g) {
                                        CHECK(g[0] == 8.0f);
                                        t.add_gradient(y, Array::from({1}, {2.0f + 0x1p-20f}));
                                      }});
  (void)z;
  CHECK(tape.value(loss)[0] == 0x1p-26f);
  tape.backward(loss, 8.0f);
  CHECK(p.gradient[0] == 2.0f);
  CHECK(seen == std::vector<std::string>{"p:weight:1", "y:activation:1", "y:activation_gradient:8",
                                         "p:weight_gradient:8"});
}

TEST_CASE("gradients of a tensor with several users are added and cast after each add", "[tape]") {
  TrackerList none;
  Caster caster(all_half(), 0, none);
  ParameterStore store;
  Parameter& p = store.add("p", Array::from({1}, {1.0f}));
  Tape tape(caster, Phase::training);
  const TensorRef w = tape.parameter(p);
  const TensorRef loss = tape.record({.name = "loss",
                                      .value = Array::from({}, {0.0f}),
                                      .rounds = Rounds::no,
                                      .backward = [w](Tape& t, Array) {
                                        // 2048 + 1 is 2048 in FP16, twice; 2048 + 2 would be 2050.
                                        t.add_gradient(w, Array::from({1}, {2048.0f}));
                                        t.add_gradient(w, Array::from({1}, {1.0f}));
                                        t.add_gradient(w, Array::from({1}, {1.0f}));
                                      }});
  tape.backward(loss, 1.0f);
  CHECK(p.gradient[0] == 2048.0f);
}

TEST_CASE("a weight with several places on a tape is cast once and gets the sum of its gradients", "[tape]") {
  std::vector<std::string> seen;
  TrackerList trackers;
  trackers.push_back(std::make_unique<Observer>(seen));
  Caster caster(all_half(), 0, trackers);
  StepObservations observations;
  caster.begin_step({.step = 1, .loss_scale = 1, .observations = &observations});
  ParameterStore store;
  Parameter& p = store.add("p", Array::from({1}, {1.0f}));
  Tape tape(caster, Phase::training);
  const auto use = [&](const std::string& name, float gradient) {
    const TensorRef w = tape.parameter(p);
    return tape.record(
        {.name = name,
         .value = Array::from({}, {0.0f}),
         .rounds = Rounds::no,
         .backward = [w, gradient](Tape& t, Array) { t.add_gradient(w, Array::from({1}, {gradient})); }});
  };
  // From the last: 2048, then 2048 + 1 and once more, each of which is 2048 in FP16.
  const std::vector<TensorRef> uses{use("a", 1), use("b", 1), use("c", 2048)};
  CHECK(tape.value(uses[2]).item() == 0.0f);
  tape.backward(total_loss(tape, "loss", uses), 1.0f);
  CHECK(p.gradient[0] == 2048.0f);
  CHECK(std::ranges::count(seen, "p:weight:1") == 1);
  // The contributions of c and b, and both sums; that of a is added before it is rounded.
  CHECK(std::ranges::count(seen, "p:weight_gradient:1") == 4);
  p.gradient = {};
  Tape again(caster, Phase::training);
  const TensorRef loss = again.record(
      {.name = "loss", .value = Array::from({}, {0.0f}), .rounds = Rounds::no, .backward = [](Tape&, Array) {
       }});
  again.backward(loss, 1.0f);
  CHECK(p.gradient.empty());
}

TEST_CASE("data and evaluation have no gradients", "[tape]") {
  TrackerList none;
  Caster caster({}, 0, none);
  Tape training(caster, Phase::training);
  CHECK_FALSE(training.needs_gradient(training.input("x", Array::zeros({2}))));
  Tape evaluation(caster, Phase::evaluation);
  ParameterStore store;
  CHECK_FALSE(evaluation.needs_gradient(evaluation.parameter(store.add("p", Array::zeros({2})))));
}

TEST_CASE("policies are what their names say", "[policy]") {
  const auto storage = [](const PrecisionPolicy& policy, Role role) {
    return to_string(policy.quantizer(role));
  };
  CHECK(storage(fp32_policy(), Role::activation) == "fp32");
  for (const Role role : {Role::weight, Role::activation, Role::activation_gradient, Role::weight_gradient}) {
    CHECK(storage(fp16_mixed_policy(), role) == "fp16");
  }
  CHECK(storage(fp16_mixed_policy(), Role::master_weight) == "fp32");
  CHECK(storage(fp16_no_master_policy(), Role::master_weight) == "fp16");
  CHECK(storage(fp16_no_master_policy(), Role::optimizer_state) == "fp32");
  CHECK(storage(fp16_pure_policy(), Role::optimizer_state) == "fp16");
  PrecisionPolicy policy;
  policy.reductions = parse_scoped_accumulate("fp16_sequential@bn*");
  CHECK(to_string(policy.reductions) == "fp16_sequential@bn*");
  CHECK(to_string(policy.reductions_in("bn2")) == "fp16_sequential");
  CHECK(to_string(policy.reductions_in("loss")) == "fp32_chunked(256)");
}

}  // namespace
}  // namespace halfscope::tape_test
