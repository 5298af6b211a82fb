// The layers of classifiers, and naive loops that say what each should give.
#include <algorithm>

#include "sim/layers/layers.hpp"
#include "tests/reference/layers.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::classifier_layer_cases {
namespace {

const std::vector<std::int32_t> labels{2, 0, 1};

std::vector<LayerCase> cases() {
  return {
      {"linear",
       {3, 5},
       [](ParameterStore& s) {
         s.add("w", uniform_array({5, 4}, -1, 1, 2));
         s.add("b", uniform_array({4}, -1, 1, 3));
       },
       [](Tape& t, TensorRef x, ParameterStore& s) {
         return linear(t, "y", x, {parameter(s, 1), parameter(s, 2)});
       },
       [](const ParameterStore& s) { return reference::linear(master(s, 0), master(s, 1), master(s, 2)); }},
      {"conv2d",
       {2, 4, 6, 3},
       [](ParameterStore& s) {
         s.add("w", uniform_array({3, 3, 3, 5}, -1, 1, 2));
       },
       [](Tape& t, TensorRef x, ParameterStore& s) { return conv2d(t, "y", x, {parameter(s, 1)}); },
       [](const ParameterStore& s) { return reference::conv2d(master(s, 0), master(s, 1)); }},
      {"batch_norm",
       {2, 3, 4, 5},
       [](ParameterStore& s) {
         s.add("gamma", uniform_array({5}, 0.5f, 1.5f, 2));
         s.add("beta", uniform_array({5}, -1, 1, 3));
         s.add_buffer("mean", Array::zeros({5}));
         s.add_buffer("variance", Array::zeros({5}));
       },
       [](Tape& t, TensorRef x, ParameterStore& s) {
         return batch_norm(t, "y", x,
                           {.gamma = parameter(s, 1),
                            .beta = parameter(s, 2),
                            .running_mean = s.buffers[0],
                            .running_variance = s.buffers[1]});
       },
       [](const ParameterStore& s) {
         return reference::batch_norm(master(s, 0), master(s, 1), master(s, 2), 1e-5);
       }},
      {"relu",
       {3, 7},
       [](ParameterStore&) {},
       [](Tape& t, TensorRef x, ParameterStore&) { return relu(t, "y", x); },
       [](const ParameterStore& s) {
         std::vector<double> y;
         for (const float x : master(s, 0).values()) y.push_back(x > 0 ? static_cast<double>(x) : 0.0);
         return y;
       }},
      {"max_pool",
       {2, 4, 6, 3},
       [](ParameterStore&) {},
       [](Tape& t, TensorRef x, ParameterStore&) { return max_pool(t, "y", x); },
       [](const ParameterStore& s) {
         const Array& x = master(s, 0);
         std::vector<double> y;
         for (std::size_t n = 0; n < 2; ++n)
           for (std::size_t r = 0; r < 2; ++r)
             for (std::size_t c = 0; c < 3; ++c)
               for (std::size_t k = 0; k < 3; ++k) {
                 const auto at = [&](std::size_t dr, std::size_t dc) {
                   return static_cast<double>(x[((n * 4 + 2 * r + dr) * 6 + 2 * c + dc) * 3 + k]);
                 };
                 y.push_back(std::max(std::max(at(0, 0), at(0, 1)), std::max(at(1, 0), at(1, 1))));
               }
         return y;
       }},
      {"softmax_cross_entropy",
       {3, 4},
       [](ParameterStore&) {},
       [](Tape& t, TensorRef x, ParameterStore&) { return softmax_cross_entropy(t, "y", x, labels); },
       [](const ParameterStore& s) {
         return std::vector<double>{reference::softmax_cross_entropy(master(s, 0), labels)};
       }},
      {"softmax_cross_entropy with smoothed labels",
       {3, 4},
       [](ParameterStore&) {},
       [](Tape& t, TensorRef x, ParameterStore&) { return softmax_cross_entropy(t, "y", x, labels, 0.25f); },
       [](const ParameterStore& s) {
         return std::vector<double>{reference::softmax_cross_entropy(master(s, 0), labels, 0.25)};
       }},
  };
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::classifier_layer_cases
