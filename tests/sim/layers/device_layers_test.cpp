// Every layer makes the same bits on the device as on the CPU: forward, backward and running statistics.
#include <algorithm>

#include "tests/sim/layers/layer_case.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::device_layers_test {
namespace {

/// A number that a layer makes or changes.
struct Numbers {
  std::string name;
  std::vector<float> values;
};

Numbers host_copy(const std::string& name, const Array& array) {
  const Array here = array.to(Device::cpu);
  return {name, {here.values().begin(), here.values().end()}};
}

/// The output, the gradients of a fixed random combination of it, and the buffers.
std::vector<Numbers> run_layer(const LayerCase& layer, Device device, const PrecisionPolicy& policy,
                               Phase phase) {
  const DeviceScope scope(device);
  ParameterStore store;
  store.add("x", uniform_array(layer.input, -2, 2, 1));
  layer.add_parameters(store);
  TrackerList none;
  Caster caster(policy, 0, none);
  Tape tape(caster, phase);
  const TensorRef y = layer.apply(tape, leaf(tape, store.parameters[0]), store);
  std::vector<Numbers> made{host_copy("output", tape.value(y))};
  const auto backward = [&](BackwardScope& t, const Array&) {
    t.add_gradient(y, uniform_array(t.value(y).shape(), -1, 1, 77));
  };
  const TensorRef loss = loss_with(tape, backward, "objective");
  if (phase == Phase::training) tape.backward(loss, 1.0f);
  for (const Parameter& p : store.parameters) made.push_back(host_copy(p.name, p.gradient));
  for (const Buffer& buffer : store.buffers) made.push_back(host_copy(buffer.name, buffer.value));
  return made;
}

/// Plain FP32, FP16 tensors, and each order of accumulation that products and reductions have.
std::vector<PrecisionPolicy> policies() {
  std::vector<PrecisionPolicy> all{fp32_policy(), fp16_mixed_policy()};
  for (const auto& [products, reductions] : {std::pair{"fp16_sequential", "fp16_sequential"},
                                             {"fp16_chunked(4)", "fp16_chunked(3)"},
                                             {"fp16_fused", "fp16_pairwise"},
                                             {"fp32_fused", "fp32_kahan"},
                                             {"tensor_core(hopper)", "bf16_pairwise"},
                                             {"bf16_tensor_core(ampere)", "fp16_kahan"}}) {
    PrecisionPolicy policy = fp32_policy();
    policy.products = parse_accumulate_model(products);
    policy.reductions = parse_scoped_accumulate(reductions);
    all.push_back(policy);
  }
  return all;
}

TEST_CASE("layers make the bits of the CPU on the device", "[layers][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  for (const LayerCase& layer : all_layer_cases()) {
    for (const PrecisionPolicy& policy : policies()) {
      for (const Phase phase : {Phase::training, Phase::evaluation}) {
        const auto expected = run_layer(layer, Device::cpu, policy, phase);
        const auto found = run_layer(layer, Device::cuda, policy, phase);
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          INFO(layer.name << ", " << expected[i].name << ", products " << to_string(policy.products)
                          << ", reductions " << to_string(policy.reductions));
          CHECK(std::equal(expected[i].values.begin(), expected[i].values.end(), found[i].values.begin(),
                           found[i].values.end(), same_bits));
        }
      }
    }
  }
}

}  // namespace
}  // namespace halfscope::device_layers_test
