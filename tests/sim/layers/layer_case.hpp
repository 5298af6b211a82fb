// A case of the tests of layers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/tape/tape.hpp"

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

/// A file of cases, which `all_layer_cases` has for being linked: `const LayerCases registered(cases);`.
class LayerCases {
 public:
  using Make = std::vector<LayerCase> (*)();
  explicit LayerCases(Make make) { registry().push_back(make); }
  [[nodiscard]] static std::vector<Make>& registry() {
    static std::vector<Make> makes;
    return makes;
  }
};

/// The cases of every `*_cases.cpp`; parameter 0 is the input.
[[nodiscard]] inline std::vector<LayerCase> all_layer_cases() {
  std::vector<LayerCase> cases;
  for (const LayerCases::Make make : LayerCases::registry()) {
    for (LayerCase& layer : make()) cases.push_back(std::move(layer));
  }
  return cases;
}

}  // namespace halfscope
