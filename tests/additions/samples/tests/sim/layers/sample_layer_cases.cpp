// The sample layer, and the naive loop that says what it should give.
#include "sim/layers/layers.hpp"
#include "tests/sim/layers/layer_case.hpp"

namespace halfscope::sample_layer_cases {
namespace {

std::vector<LayerCase> cases() {
  return {{"sample_layer",
           {4, 3},
           [](ParameterStore& /*store*/) {},
           [](Tape& t, TensorRef x, ParameterStore&) { return sample_layer(t, "y", x); },
           [](const ParameterStore& s) {
             std::vector<double> y;
             for (const float x : master(s, 0).values())
               y.push_back(static_cast<double>(x) * static_cast<double>(x));
             return y;
           }}};
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::sample_layer_cases
