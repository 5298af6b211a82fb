// The tape and the cast: where numbers are rounded, who sees them, and in which order gradients are added.
#include "sim/tape/tape.hpp"

#include <type_traits>

#include "sim/layers/attention.hpp"
#include "sim/layers/layers.hpp"
#include "tests/sim/tape/leaf.hpp"
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

/// Types that take a parameter, an output or a cast without an operation or its context.
template <typename T>
concept TakesParameter = requires(T& tape, Parameter& parameter) {
  tape.parameter(parameter);
};
template <typename T>
concept TakesOutput = requires(T& tape) {
  tape.record({.value = Array{}});
};
template <typename T>
concept CastsWithoutContext = requires(T& caster, Array& array) {
  caster.cast(array, "x", Role::activation);
};
template <typename T>
concept TakesGradient = requires(T& scope, TensorRef x) {
  scope.add_gradient(x, Array{});
};

// A layer that leaves its operation out does not compile.
static_assert(TakesParameter<const Operation> && !TakesParameter<Tape>);
static_assert(TakesOutput<const Operation> && !TakesOutput<Tape>);
static_assert(TakesGradient<BackwardScope> && !TakesGradient<Tape>);
static_assert(!CastsWithoutContext<Caster>);
static_assert(!std::is_copy_constructible_v<Operation> && !std::is_move_constructible_v<Operation>);

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
  const TensorRef w = leaf(tape, p);
  CHECK(tape.value(w)[0] == 1.0f);
  CHECK(p.master[0] == 1.0f + 0x1p-20f);
  const TensorRef y =
      tape.operation("mul", "y")
          .record({.value = Array::from({1}, {0x1p-26f}),
                   .backward = [w](BackwardScope& t, Array g) { t.add_gradient(w, std::move(g)); }});
  CHECK(tape.value(y)[0] == 0.0f);
  const TensorRef z = relu(tape, "z", y);
  const TensorRef loss = tape.operation("total_loss", "loss")
                             .record({.value = Array::from({}, {0x1p-26f}),
                                      .rounds = Rounds::no,
                                      .backward = [y](BackwardScope& t, Array g) {
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
  const TensorRef w = leaf(tape, p);
  const TensorRef loss = loss_with(tape, [w](BackwardScope& t, Array) {
    // 2048 + 1 is 2048 in FP16, twice; 2048 + 2 would be 2050.
    t.add_gradient(w, Array::from({1}, {2048.0f}));
    t.add_gradient(w, Array::from({1}, {1.0f}));
    t.add_gradient(w, Array::from({1}, {1.0f}));
  });
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
    const TensorRef w = leaf(tape, p);
    return loss_with(
        tape, [w, gradient](BackwardScope& t, Array) { t.add_gradient(w, Array::from({1}, {gradient})); },
        name);
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
  const TensorRef loss = loss_with(again, [](BackwardScope&, Array) {});
  again.backward(loss, 1.0f);
  CHECK(p.gradient.empty());
}

/// Writes down the pass and the micro-batch of each cast.
class PassObserver final : public Tracker {
 public:
  explicit PassObserver(std::vector<std::string>& seen) : seen_(seen) {}
  [[nodiscard]] CastDetail watches_casts(Role) const override { return CastDetail::counters; }
  void on_cast(const CastEvent& event, StepObservations&) override {
    seen_.push_back(std::string(event.site.tensor) + " " + std::string(name_of(event.site.pass)) + " " +
                    std::to_string(event.site.micro_batch));
  }

 private:
  std::vector<std::string>& seen_;
};

TEST_CASE("each cast has the pass and the micro-batch of its own tape", "[tape]") {
  std::vector<std::string> seen;
  TrackerList trackers;
  trackers.push_back(std::make_unique<PassObserver>(seen));
  Caster caster(all_half(), 0, trackers);
  StepObservations observations;
  caster.begin_step({.step = 1, .observations = &observations});
  ParameterStore store;
  Parameter& p = store.add("p", Array::from({1}, {1.0f}));
  for (const std::int32_t micro_batch : {0, 1}) {
    Tape tape(caster, Phase::training, {.micro_batch = micro_batch});
    const TensorRef y = scaled(tape, "y", leaf(tape, p), 3);
    const auto ones = [y](BackwardScope& scope, Array) { scope.add_gradient(y, Array::from({1}, {1})); };
    tape.backward(loss_with(tape, ones), 1);
  }
  CHECK(seen == std::vector<std::string>{"p forward 0", "y forward 0", "y backward 0", "p backward 0",
                                         "p forward 1", "y forward 1", "y backward 1", "p backward 1"});
}

TEST_CASE("data and evaluation have no gradients", "[tape]") {
  TrackerList none;
  Caster caster({}, 0, none);
  Tape training(caster, Phase::training);
  CHECK_FALSE(training.needs_gradient(training.input("x", Array::zeros({2}))));
  Tape evaluation(caster, Phase::evaluation);
  ParameterStore store;
  CHECK_FALSE(evaluation.needs_gradient(leaf(evaluation, store.add("p", Array::zeros({2})))));
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
