// Common part of recurrent layers: parameters, the projection of all inputs, casts of single time steps, and
// the gradients of the hidden weights.
#pragma once

#include <span>
#include <string>

#include "lib/nn/strided_elementwise.hpp"

#include "sim/tape/tape.hpp"

namespace halfscope {

/// The gates lie side by side in `gates * hidden` columns; the transposes of PyTorch's weight_ih and
/// weight_hh, and its bias_ih and bias_hh.
struct RecurrentParameters {
  Parameter& input_weight;   // (in, gates * hidden)
  Parameter& input_bias;     // (gates * hidden)
  Parameter& hidden_weight;  // (hidden, gates * hidden)
  Parameter& hidden_bias;    // (gates * hidden)
};

/// Extents of a layer's run; a state is (batch, state), which is (batch, hidden) unless it is projected.
struct RecurrentExtents {
  std::int64_t time = 0, batch = 0, hidden = 0, gates = 0, state = 0;
};
/// `projection`, if there is one, is (hidden, state); the hidden weight then is (state, gates * hidden).
/// Throws InvalidArgument where x (time, batch, in) and the parameters do not fit each other.
[[nodiscard]] RecurrentExtents recurrent_extents(const Tape& tape, const std::string& name, TensorRef x,
                                                 const RecurrentParameters& parameters, std::int64_t gates,
                                                 const Parameter* projection = nullptr);

/// Time step t of `array` (time, ...), as it is stored.
[[nodiscard]] ConstArrayView at_time(const Array& array, std::int64_t t);
[[nodiscard]] ArrayView at_time(Array& array, std::int64_t t);

/// The time steps of an array (time, ...) to be computed as floats, one after the other: where the array has
/// floats in its own memory, else in a buffer, whose numbers `store` brings there.
class TimeSteps {
 public:
  explicit TimeSteps(Array& array);
  [[nodiscard]] std::span<float> at(std::int64_t t);
  void store(std::int64_t t);

 private:
  Array& array_;
  Array buffer_;
};

/// The columns from gate `first` on in a time step's matrix of gates (batch, gates * hidden).
[[nodiscard]] ConstColumns gate_columns(const RecurrentExtents& extents, const ConstArrayView& gates,
                                        std::int64_t first = 0);
[[nodiscard]] Columns gate_columns(const RecurrentExtents& extents, std::span<float> gates,
                                   std::int64_t first = 0);
[[nodiscard]] Columns gate_columns(const RecurrentExtents& extents, const ArrayView& gates,
                                   std::int64_t first = 0);
/// Operations on `gates` neighbouring gates of a time step.
[[nodiscard]] ColumnExtents gate_extents(const RecurrentExtents& extents, std::int64_t gates = 1);

/// Casts the tensors of a layer time step by time step: tensor "LAYER.TENSOR", part t.
struct StepCaster {
  const CastScope& casts;
  std::string layer;
  Role role;
  std::int64_t time = 0;

  void operator()(std::span<float> values, const char* tensor) const {
    casts.cast(values, layer + tensor, role, static_cast<std::int32_t>(time));
  }
};

/// (batch, gates * hidden) = state (batch, hidden) hidden_weight + hidden_bias, for the weights on the tape.
struct HiddenWeights {
  TensorRef weight, bias;
};
void project_state(const Operation& operation, const HiddenWeights& weights, const ConstArrayView& state,
                   std::span<float> projection);

/// Adds the gradients of the hidden weights: one sum over all time steps and examples, rounded once, from
/// the states (time, batch, hidden) after each step and the gradients (time, batch, gates * hidden) of the
/// projections of the states before it. The first step's state is zero.
void add_hidden_gradients(BackwardScope& scope, const HiddenWeights& weights, const Array& states,
                          const Array& projection_gradient);

}  // namespace halfscope
