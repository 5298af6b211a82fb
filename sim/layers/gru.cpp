// Forward through time and back again.
#include "sim/layers/layers.hpp"

#include <memory>
#include <utility>

#include "lib/nn/elementary.hpp"
#include "lib/nn/elementwise.hpp"

#include "sim/layers/matrix.hpp"

namespace halfscope {
namespace gru_layer {
namespace {

/// Results of forward that backward needs.
struct Saved {
  RecurrentExtents extents;
  Array hidden;      // (time, batch, 3 hidden): h V + c
  Array gates;       // (time, batch, 2 hidden): r, z
  Array candidate;   // (time, batch, hidden): n
  Array difference;  // (time, batch, hidden): h - n
  Array states;      // (time, batch, hidden): h'
};

Saved make_saved(const RecurrentExtents& e, DType storage) {
  const auto make = [&](std::int64_t gates) { return Array({e.time, e.batch, gates * e.hidden}, storage); };
  return {e, make(3), make(2), make(1), make(1), make(1)};
}

/// Results of one time step.
struct Steps {
  RecurrentExtents extents;
  TimeSteps hidden, gates, candidate, difference, states;

  explicit Steps(Saved& saved)
      : extents(saved.extents),
        hidden(saved.hidden),
        gates(saved.gates),
        candidate(saved.candidate),
        difference(saved.difference),
        states(saved.states) {}
  void store(std::int64_t t) {
    for (TimeSteps* tensor : {&hidden, &gates, &candidate, &difference, &states}) tensor->store(t);
  }
};

/// From the projections, of which the states' is in steps.hidden, to the state after step t.
void forward_step(const StepCaster& cast, const ConstArrayView& input, const ConstArrayView& before,
                  Steps& steps) {
  const RecurrentExtents& e = steps.extents;
  const std::span<float> hidden = steps.hidden.at(cast.time), gates = steps.gates.at(cast.time);
  const std::span<float> candidate = steps.candidate.at(cast.time);
  const std::span<float> difference = steps.difference.at(cast.time), state = steps.states.at(cast.time);
  cast(hidden, ".hidden");
  combine(Combination::sum, gate_extents(e, 2), gate_columns(e, input), gate_columns(e, hidden),
          gate_columns(e, gates));
  cast(gates, ".gate_sum");
  apply(Elementary::sigmoid, gates, gates);
  cast(gates, ".gate");
  combine(Combination::product, gate_extents(e), gate_columns(e, gates), gate_columns(e, hidden, 2),
          gate_columns(e, candidate));
  cast(candidate, ".reset");
  combine(Combination::sum, gate_extents(e), gate_columns(e, candidate), gate_columns(e, input, 2),
          gate_columns(e, candidate));
  cast(candidate, ".candidate_sum");
  apply(Elementary::tanh, candidate, candidate);
  cast(candidate, ".candidate");
  combine(Combination::difference, before, candidate, difference);
  cast(difference, ".difference");
  combine(Combination::product, gate_extents(e), gate_columns(e, gates, 1), gate_columns(e, difference),
          gate_columns(e, state));
  cast(state, ".update");
  add(candidate, state);
  cast(state, "");
  steps.store(cast.time);
}

/// Gradients of one step, and where they go.
struct StepGradient {
  Array state;       // (batch, hidden): of h'
  Array difference;  // (batch, hidden): of h - n, which is all that flows straight on to h
  Array gates;       // (batch, 2 hidden)
  Array candidate;   // (batch, hidden)
  Array reset;       // (batch, hidden): of h V + c in the candidate's columns
};

/// From the gradient of h' to those of both projections.
void backward_step(const StepCaster& cast, const Saved& saved, StepGradient& g, const ArrayView& input,
                   const ArrayView& hidden) {
  const RecurrentExtents& e = saved.extents;
  const auto gates = at_time(saved.gates, cast.time), candidate = at_time(saved.candidate, cast.time);
  const auto difference = at_time(saved.difference, cast.time), projected = at_time(saved.hidden, cast.time);
  const std::span<float> g_gates = g.gates.values(), g_difference = g.difference.values();
  const std::span<float> g_candidate = g.candidate.values(), g_reset = g.reset.values();
  const ConstColumns g_state = gate_columns(e, std::as_const(g.state).values());
  combine(Combination::product, gate_extents(e), g_state, gate_columns(e, gates, 1),
          gate_columns(e, g_difference));
  combine(Combination::product, gate_extents(e), g_state, gate_columns(e, difference),
          gate_columns(e, g_gates, 1));
  cast(g_difference, ".difference");
  combine(Combination::difference, g.state.values(), g_difference, g_candidate);
  cast(g_candidate, ".candidate");
  combine(Combination::tanh_gradient, g_candidate, candidate, g_candidate);
  cast(g_candidate, ".candidate_sum");
  combine(Combination::product, gate_extents(e), gate_columns(e, g_candidate), gate_columns(e, projected, 2),
          gate_columns(e, g_gates));
  combine(Combination::product, gate_extents(e), gate_columns(e, g_candidate), gate_columns(e, gates),
          gate_columns(e, g_reset));
  cast(g_gates, ".gate");
  cast(g_reset, ".hidden");
  combine(Combination::sigmoid_gradient, g_gates, gates, g_gates);
  cast(g_gates, ".gate_sum");
  for (const ArrayView& projection : {input, hidden}) {
    copy_columns(gate_extents(e, 2), gate_columns(e, g_gates), gate_columns(e, projection));
  }
  copy_columns(gate_extents(e), gate_columns(e, g_candidate), gate_columns(e, input, 2));
  copy_columns(gate_extents(e), gate_columns(e, g_reset), gate_columns(e, hidden, 2));
}

/// The gradients of the input's projection and of the states' (time, batch, 3 hidden) from that of the
/// states after each step.
struct ProjectionGradients {
  Array input, hidden;
};
ProjectionGradients backward_through_time(const BackwardScope& scope, const std::string& name,
                                          const Saved& saved, const Array& transposed_weight,
                                          const Array& gradient) {
  const RecurrentExtents& e = saved.extents;
  const DType storage = scope.casts().storage(Role::activation_gradient);
  ProjectionGradients result{Array({e.time, e.batch, 3 * e.hidden}, storage),
                             Array({e.time, e.batch, 3 * e.hidden}, storage)};
  StepGradient g{Array({e.batch, e.hidden}), Array({e.batch, e.hidden}), Array({e.batch, 2 * e.hidden}),
                 Array({e.batch, e.hidden}), Array({e.batch, e.hidden})};
  StepCaster cast{scope.casts(), name, Role::activation_gradient};
  for (cast.time = e.time - 1; cast.time >= 0; --cast.time) {
    const auto from_above = at_time(gradient, cast.time);
    if (cast.time == e.time - 1) {
      convert(from_above, g.state.view());
    } else {
      multiply_rows(at_time(std::as_const(result.hidden), cast.time + 1), transposed_weight,
                    scope.policy().products, g.state.values());
      cast(g.state.values(), ".previous");
      add(from_above, g.difference.values());
      add(g.difference.values(), g.state.values());
      cast(g.state.values(), ".state");
    }
    backward_step(cast, saved, g, at_time(result.input, cast.time), at_time(result.hidden, cast.time));
  }
  return result;
}

}  // namespace
}  // namespace gru_layer

TensorRef gru(Tape& tape, const std::string& name, TensorRef x, const RecurrentParameters& parameters) {
  using namespace gru_layer;
  const RecurrentExtents extents = recurrent_extents(tape, name, x, parameters, 3);
  TensorRef input = linear(tape, name + ".input", x, {parameters.input_weight, parameters.input_bias});
  const Operation operation = tape.operation("gru", name, {&input});
  const HiddenWeights weights{operation.parameter(parameters.hidden_weight),
                              operation.parameter(parameters.hidden_bias)};
  const DType storage = operation.casts().storage(Role::activation);
  auto saved = std::make_shared<Saved>(make_saved(extents, storage));
  Steps steps(*saved);
  const Array zero = Array::zeros({extents.batch, extents.hidden}, storage);
  StepCaster cast{operation.casts(), name, Role::activation};
  for (; cast.time < extents.time; ++cast.time) {
    const ConstArrayView before =
        cast.time == 0 ? zero.view() : at_time(std::as_const(saved->states), cast.time - 1);
    project_state(operation, weights, before, steps.hidden.at(cast.time));
    forward_step(cast, at_time(tape.value(input), cast.time), before, steps);
  }

  Array states = saved->states.clone();
  const auto backward = [name, input, weights, saved](BackwardScope& scope, Array gradient) {
    ProjectionGradients gradients =
        backward_through_time(scope, name, *saved, transposed(scope.value(weights.weight)), gradient);
    add_hidden_gradients(scope, weights, saved->states, gradients.hidden);
    scope.add_gradient(input, std::move(gradients.input), Rounds::no);
  };
  return operation.record({.value = std::move(states), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
