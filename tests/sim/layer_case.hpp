// A case of the tests of layers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/tape.hpp"

namespace halfscope {

/// One layer under test: its input is a parameter too, so that its gradient comes out.
struct LayerCase {
  std::string name;
  Shape input;
  std::function<void(ParameterStore&)> add_parameters;
  std::function<TensorRef(Tape&, TensorRef, ParameterStore&)> apply;
  /// The output in double precision, where a naive loop says what it should be.
  std::function<std::vector<double>(const ParameterStore&)> reference;
};

inline Parameter& parameter(ParameterStore& store, std::size_t i) {
  return store.parameters[i];
}
inline const Array& master(const ParameterStore& store, std::size_t i) {
  return store.parameters[i].master;
}

/// The layers of classifiers; parameter 0 is the input.
[[nodiscard]] std::vector<LayerCase> classifier_layer_cases();
/// The layers of detectors and segmentations.
[[nodiscard]] std::vector<LayerCase> image_layer_cases();
/// The layers that sequences go through.
[[nodiscard]] std::vector<LayerCase> sequence_layer_cases();
[[nodiscard]] std::vector<LayerCase> all_layer_cases();

}  // namespace halfscope
