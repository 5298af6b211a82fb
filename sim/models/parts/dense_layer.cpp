// Makes linear layers.
#include "sim/models/parts/dense_layer.hpp"

#include "sim/models/parts/initial.hpp"

namespace halfscope {

LinearParameters add_dense_layer(ParameterStore& store, const ModelSpec& model, const DenseSpec& spec) {
  const std::string weight = spec.name + ".weight";
  Parameter& w =
      store.add(weight, layer_weights(model, {spec.in, spec.out}, spec.gain * he_deviation(spec.in), weight));
  return {w, store.add(spec.name + ".bias", constant_weights({spec.out}, 0))};
}

}  // namespace halfscope
