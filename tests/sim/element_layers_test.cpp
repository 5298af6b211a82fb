// Layers without products give the same bits on the CPU and on the device, forward and backward.
#include <algorithm>

#include <halfscope/format/bits.hpp>

#include "sim/layers/max_pool.hpp"
#include "sim/layers/relu.hpp"
#include "tests/sim/layer_case.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/twins.hpp"

namespace halfscope {
namespace {

/// In image_layer_cases and sequence_layer_cases.
constexpr const char* names[] = {
    "concat_channels",     "dropout",         "embedding", "gather_predictions",
    "global_average_pool", "layer_norm",      "smooth_l1", "sigmoid_cross_entropy",
    "total_loss",          "upsample_nearest"};

std::vector<LayerCase> cases_without_products() {
  std::vector<LayerCase> cases{{"relu",
                                {3, 7},
                                [](ParameterStore&) {},
                                [](Tape& t, TensorRef x, ParameterStore&) { return relu(t, "y", x); },
                                {}},
                               {"max_pool",
                                {2, 4, 6, 3},
                                [](ParameterStore&) {},
                                [](Tape& t, TensorRef x, ParameterStore&) { return max_pool(t, "y", x); },
                                {}}};
  for (const auto& table : {sequence_layer_cases(), image_layer_cases()}) {
    for (const LayerCase& layer : table) {
      if (std::find(std::begin(names), std::end(names), layer.name) != std::end(names))
        cases.push_back(layer);
    }
  }
  return cases;
}

using Arrays = std::vector<std::vector<float>>;

/// The layer's output and the gradients of its input and parameters, where they are rounded to FP16.
Arrays results_on(Device device, const LayerCase& layer) {
  const DeviceScope scope(device);
  ParameterStore store;
  store.add("x", uniform_array(layer.input, -2, 2, 1));
  layer.add_parameters(store);
  TrackerList none;
  Caster caster(fp16_mixed_policy(), 0, none);
  Tape tape(caster, Phase::training);
  const TensorRef y = layer.apply(tape, tape.parameter(store.parameters[0]), store);
  const TensorRef loss = tape.record(
      {.name = "objective", .value = Array::zeros({}), .rounds = Rounds::no, .backward = [y](Tape& t, Array) {
         t.add_gradient(y, uniform_array(t.value(y).shape(), -1, 1, 77));
       }});
  tape.backward(loss, 1.0f);
  Arrays arrays{to_host(tape.value(y).values())};
  for (const Parameter& p : store.parameters) arrays.push_back(to_host(p.gradient.values()));
  return arrays;
}

TEST_CASE("layers without products are the same on the device", "[layers][cuda]") {
  if (!can_use_device()) {
    WARN("skipped: this machine has no CUDA device");
    return;
  }
  const SimulatedDevice simulated;
  const std::vector<LayerCase> cases = cases_without_products();
  CHECK(cases.size() == 2 + std::size(names));
  for (const LayerCase& layer : cases) {
    INFO(layer.name);
    const Arrays here = results_on(Device::cpu, layer), there = results_on(Device::cuda, layer);
    CHECK(std::any_of(here[1].begin(), here[1].end(), [](float g) { return g != 0; }));
    CHECK((here == there));
  }
}

}  // namespace
}  // namespace halfscope
