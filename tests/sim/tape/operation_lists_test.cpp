// Operations on lists, as automatic mixed precision has them: which tensors are rounded, and where gradients
// of a weight's several uses are added.
#include "sim/layers/layers.hpp"
#include "sim/layers/losses.hpp"
#include "sim/tape/operation_formats.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::operation_lists_test {
namespace {

/// One more than 1 that FP16 does not hold.
constexpr float unheld = 1.0f + 0x1p-20f;

PrecisionPolicy with_rules(PrecisionPolicy policy, OperationList list, std::string_view text) {
  for (const OperationRule& rule : parse_operation_rules(list, text)) policy.rules.push_back(rule);
  return policy;
}

/// The formats of the operation `name` under a policy of the table.
std::string formats_of(std::string_view policy, OperationId operation) {
  return to_string(operation_formats(find_in_table("policy", policy, policy_table).make(), operation));
}

TEST_CASE("autocast and Apex have operations on the lists that their sources say", "[operations]") {
  const std::string half = "fp16 -> tensor_core(hopper) -> fp16";
  for (const OperationId product :
       {OperationId("conv2d"), OperationId("conv_transpose2d"), OperationId("linear"), OperationId("matmul"),
        OperationId("lstm"), OperationId("gru")}) {
    for (const std::string_view policy : {"autocast_cuda", "apex_o1", "apex_o2", "apex_o3", "fp16_mixed"})
      CHECK(formats_of(policy, product) == half);
    CHECK(formats_of("apex_o0", product) == "fp32 -> fp32_fused -> fp32");
  }
  CHECK(formats_of("autocast_cpu", "conv2d") == "bf16 -> bf16_tensor_core(hopper) -> bf16");
  CHECK(formats_of("autocast_cpu", "lstm") ==
        "widest -> bf16_tensor_core(hopper) -> widest, parameters fp32");

  for (const OperationId one :
       {OperationId("relu"), OperationId("max_pool2d"), OperationId("dropout"), OperationId("tanh"),
        OperationId("sigmoid"), OperationId("leaky_relu"), OperationId("adaptive_avg_pool2d"),
        OperationId("add"), OperationId("cat"), OperationId("mul")}) {
    for (const std::string_view policy : {"autocast_cuda", "autocast_cpu", "apex_o1"})
      CHECK(formats_of(policy, one) == "widest -> fp32 -> widest");
    CHECK(formats_of("apex_o2", one) == "fp16 -> fp32 -> fp16");
    CHECK(formats_of("apex_o3", one) == "fp16 -> fp32 -> fp16");
  }
  // Native autocast leaves GELU as its input is; Apex's O1 does not. A CPU's list has neither softmax nor
  // layer norm.
  CHECK(formats_of("autocast_cuda", "gelu") == "widest -> fp32 -> widest");
  CHECK(formats_of("apex_o1", "gelu") == "fp32 -> fp32 -> fp32");
  CHECK(formats_of("autocast_cuda", "softmax") == "fp32 -> fp32 -> fp32");
  CHECK(formats_of("apex_o1", "softmax") == "fp32 -> fp32 -> fp32");
  CHECK(formats_of("autocast_cpu", "softmax") == "widest -> fp32 -> widest");
  CHECK(formats_of("autocast_cuda", "layer_norm") == "fp32 -> fp32 -> fp32");
  CHECK(formats_of("autocast_cpu", "layer_norm") == "widest -> fp32 -> widest, parameters fp32");
  CHECK(formats_of("apex_o2", "layer_norm") == "fp16 -> fp32 -> fp16");

  CHECK(formats_of("apex_o1", "batch_norm") == "widest -> fp32 -> widest, parameters fp32");
  CHECK(formats_of("apex_o2", "batch_norm") == "fp16 -> fp32 -> fp16, parameters fp32");
  CHECK(formats_of("apex_o3", "batch_norm") == "fp16 -> fp32 -> fp16");
  for (const std::string_view policy : {"autocast_cuda", "autocast_cpu", "apex_o1"})
    CHECK(formats_of(policy, "cross_entropy") == "fp32 -> fp32 -> fp32");
  CHECK(formats_of("apex_o2", "cross_entropy") == "fp16 -> fp32 -> fp32");

  for (const std::string_view policy : {"autocast_cuda", "apex_o1"})
    CHECK(formats_of(policy, "binary_cross_entropy") == "refused");
  CHECK(formats_of("autocast_cpu", "binary_cross_entropy") == "fp32 -> fp32 -> fp32");
  for (const std::string_view policy : {"apex_o2", "apex_o3", "fp16_mixed"})
    CHECK(formats_of(policy, "binary_cross_entropy") == "fp16 -> fp32 -> fp32");
}

/// Caster and tape of a training step under a policy.
struct Step {
  explicit Step(const PrecisionPolicy& policy) : caster(policy, 0, none) {}
  TrackerList none;
  Caster caster;
  Tape tape{caster, Phase::training};
};

TensorRef product(Tape& tape, const std::string& name, TensorRef x, ParameterStore& store) {
  Parameter& weight = store.add(name + ".weight", Array::from({1, 1}, {unheld}));
  return linear(tape, name, x, {weight, store.add(name + ".bias", Array::from({1}, {0}))});
}

/// The precision of the output of the layer called `name`.
Precision precision_of(const Tape& tape, std::string_view name) {
  for (const TapeEntry& entry : tape.entries()) {
    if (entry.name == name) return entry.precision;
  }
  FAIL("no tensor " << name);
  return {};
}

TEST_CASE("an operation in FP32 between others has FP32 output and gradient, its neighbours FP16",
          "[operations]") {
  Step step(with_rules(fp16_mixed_policy(), OperationList::deny, "mul"));
  ParameterStore store;
  const TensorRef x = step.tape.input("x", Array::from({1, 1}, {1}));
  const TensorRef first = product(step.tape, "first", x, store);
  CHECK(step.tape.value(first).item() == 1.0f);
  const TensorRef middle = scaled(step.tape, "middle", first, unheld);
  CHECK(step.tape.value(middle).item() == unheld);
  const TensorRef last = product(step.tape, "last", middle, store);
  CHECK(step.tape.value(last).item() == 1.0f);
  CHECK(precision_of(step.tape, "first") == Precision::reduced);
  CHECK(precision_of(step.tape, "middle") == Precision::fp32);
  CHECK(precision_of(step.tape, "last.cast") == Precision::reduced);
  CHECK(precision_of(step.tape, "last") == Precision::reduced);

  // Gradients of 1 through `last` and of 2^-20 beside it: FP32 holds their sum, which FP16 rounds to 1.
  step.tape.backward(loss_with(step.tape,
                               [=](BackwardScope& t, Array) {
                                 t.add_gradient(last, Array::from({1, 1}, {1}));
                                 t.add_gradient(middle, Array::from({1, 1}, {0x1p-20f}));
                               }),
                     1);
  CHECK(store.parameters[0].gradient[0] == 1.0f);
  Step other(with_rules(fp16_mixed_policy(), OperationList::deny, "*"));
  const TensorRef y = product(other.tape, "y", other.tape.input("x", Array::from({1, 1}, {unheld})), store);
  other.tape.backward(loss_with(other.tape,
                                [=](BackwardScope& t, Array) {
                                  t.add_gradient(y, Array::from({1, 1}, {unheld}));
                                }),
                      1);
  // In FP32 throughout, from the FP16 weight that the policy stores; its gradient is rounded where it
  // arrives.
  CHECK(other.tape.value(y).item() == unheld);
  CHECK(store.parameters[2].gradient[0] == 1.0f);
}

/// The gradient of a weight with two uses whose gradients are 1 and 2048, under `policy`.
float sum_of_two_uses(const PrecisionPolicy& policy) {
  Step step(policy);
  ParameterStore store;
  Parameter &weight = store.add("weight", Array::from({1, 1}, {1})),
            &bias = store.add("bias", Array::from({1}, {0}));
  const auto use = [&](const std::string& name, float input) {
    return linear(step.tape, name, step.tape.input(name + ".x", Array::from({1, 1}, {input})),
                  {weight, bias});
  };
  const TensorRef one = use("one", 1), two = use("two", 2048);
  step.tape.backward(loss_with(step.tape,
                               [=](BackwardScope& t, Array) {
                                 t.add_gradient(one, Array::from({1, 1}, {1}));
                                 t.add_gradient(two, Array::from({1, 1}, {1}));
                               }),
                     1);
  return weight.gradient[0];
}

TEST_CASE("with the cast cache a weight's gradients add up in FP16, without it in FP32", "[operations]") {
  PrecisionPolicy policy = autocast_cuda_policy();
  CHECK(sum_of_two_uses(policy) == 2048.0f);
  policy.cast_cache = CastCache::off;
  CHECK(sum_of_two_uses(policy) == 2049.0f);
  CHECK(sum_of_two_uses(fp16_mixed_policy()) == 2048.0f);
  CHECK(sum_of_two_uses(fp32_policy()) == 2049.0f);
}

TEST_CASE("a weight that is used in FP32 and in FP16 has the sum of both in FP32", "[operations]") {
  Step step(with_rules(autocast_cuda_policy(), OperationList::deny, "linear@exact"));
  ParameterStore store;
  Parameter &weight = store.add("weight", Array::from({1, 1}, {unheld})),
            &bias = store.add("bias", Array::from({1}, {0}));
  const TensorRef x = step.tape.input("x", Array::from({1, 1}, {1}));
  const TensorRef exact = linear(step.tape, "exact", x, {weight, bias});
  const TensorRef rounded = linear(step.tape, "rounded", x, {weight, bias});
  CHECK(step.tape.value(exact).item() == unheld);
  CHECK(step.tape.value(rounded).item() == 1.0f);
  step.tape.backward(loss_with(step.tape,
                               [=](BackwardScope& t, Array) {
                                 t.add_gradient(exact, Array::from({1, 1}, {0x1p-20f}));
                                 t.add_gradient(rounded, Array::from({1, 1}, {1}));
                               }),
                     1);
  CHECK(weight.gradient[0] == unheld);
}

TEST_CASE("a cast of a weight that was updated since is refused", "[operations]") {
  Step step(autocast_cuda_policy());
  ParameterStore store;
  Parameter& weight = store.add("weight", Array::from({1}, {1}));
  (void)leaf(step.tape, weight);
  (void)leaf(step.tape, weight);
  ++weight.version;
  CHECK_THROWS_AS(leaf(step.tape, weight), RuntimeFailure);
}

TEST_CASE("a loss of probabilities is refused under autocast unless the lists say otherwise",
          "[operations]") {
  const auto loss_under = [](const PrecisionPolicy& policy) {
    Step step(policy);
    const TensorRef p = step.tape.input("p", Array::from({1}, {0.5f}));
    return step.tape.value(binary_cross_entropy(step.tape, "loss", p, Array::from({1}, {1}))).item();
  };
  check_says(message_of<InvalidArgument>([&] { (void)loss_under(autocast_cuda_policy()); }),
             {"layer loss", "binary_cross_entropy", "from logits", "deny = binary_cross_entropy"});
  for (const OperationList list : {OperationList::allow, OperationList::deny})
    CHECK(loss_under(with_rules(autocast_cuda_policy(), list, "binary_cross_entropy")) == Approx(0.693147f));
  CHECK(loss_under(autocast_cpu_policy()) == Approx(0.693147f));
}

TEST_CASE("a rule for a layer overrides a rule for all, whatever list it is on", "[operations]") {
  TrainConfig config{.policy = "fp16_mixed"};
  config.operations.allow = "linear@fc2";
  config.operations.deny = "*,conv2d@conv1";
  config.operations.infer = "linear";
  const PrecisionPolicy policy = parsed(config).policy;
  CHECK(policy.list_of("relu", "any") == OperationList::deny);
  CHECK(policy.list_of("linear", "fc1") == OperationList::infer);
  CHECK(policy.list_of("linear", "fc2") == OperationList::allow);
}

TEST_CASE("bad lists of operations are refused in one line", "[operations]") {
  TrainConfig config;
  CHECK(message_of<InvalidArgument>([&] {
          set_field(config, "deny", "sofmax");
        }).starts_with("deny = 'sofmax': unknown operation 'sofmax'; did you mean 'softmax'?"));
  CHECK(message_of<InvalidArgument>([&] { set_field(config, "allow", "linear@"); }) ==
        "allow = 'linear@': 'linear@': give a glob of layers after @");
  config.operations.allow = "linear,relu";
  config.operations.deny = "softmax,relu";
  CHECK(message_of<InvalidArgument>([&] { (void)parsed(config); }) ==
        "'relu' is in allow and in deny; give it once");

  const SmallDataset dataset;
  TrainConfig misses{.steps = 1, .batch = 8};
  misses.operations.deny = "linear@fc7";
  check_says(message_of<InvalidArgument>([&] { Trainer(misses, dataset).try_example(); }),
             {"deny = linear@fc7: no layer is called that (one of: fc1, "});
  misses.operations.deny = "lstm";
  CHECK(message_of<InvalidArgument>([&] { Trainer(misses, dataset).try_example(); }) ==
        "deny = lstm: the model has no such operation");
  misses.operations.deny = "linear@fc*";
  CHECK_NOTHROW(Trainer(misses, dataset).try_example());
}

TEST_CASE("with every operation in FP32 and FP32 weights autocast is FP32 training", "[operations]") {
  const SmallDataset dataset;
  TrainConfig fp32{.steps = 4, .batch = 8}, denied{.steps = 4, .batch = 8, .policy = "autocast_cuda"};
  denied.operations.deny = "*";
  Trainer one(fp32, dataset), other(denied, dataset);
  for (int i = 0; i < 4; ++i) CHECK(one.step().loss == other.step().loss);
}

}  // namespace
}  // namespace halfscope::operation_lists_test
