// The last layers of classifiers: a matrix and a bias.
#pragma once

#include "sim/layers/layers.hpp"
#include "sim/models/model.hpp"

namespace halfscope {

/// Parameters of a dense layer: He initialisation times `gain`, a bias of 0.
struct DenseSpec {
  std::string name;
  std::int64_t in = 0, out = 0;
  float gain = 1;
};

/// Adds NAME.weight and NAME.bias to `store`; the weight is a function of the model's seed and its name.
[[nodiscard]] LinearParameters add_dense_layer(ParameterStore& store, const ModelSpec& model,
                                               const DenseSpec& spec);

}  // namespace halfscope
