// Forward through time and back again.
#include "sim/layers/layers.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "lib/nn/elementary.hpp"
#include "lib/nn/elementwise.hpp"

#include "sim/layers/matrix.hpp"

namespace halfscope {
namespace lstm_layer {
namespace {

/// Results of forward that backward needs.
struct Saved {
  RecurrentExtents extents;
  Array gates;      // (time, batch, 4 hidden): i, f, g, o
  Array cell;       // (time, batch, hidden)
  Array cell_tanh;  // (time, batch, hidden)
  Array outputs;    // (time, batch, hidden): h'
  Array projected;  // (time, batch, state); empty without a projection

  /// (time, batch, state): what the next step's gates see.
  [[nodiscard]] const Array& states() const { return projected.empty() ? outputs : projected; }
};

enum class Projection : std::uint8_t { absent, present };

Saved make_saved(const RecurrentExtents& e, DType storage, Projection projection) {
  const auto make = [&](std::int64_t columns) { return Array({e.time, e.batch, columns}, storage); };
  return {.extents = e,
          .gates = make(4 * e.hidden),
          .cell = make(e.hidden),
          .cell_tanh = make(e.hidden),
          .outputs = make(e.hidden),
          .projected = projection == Projection::present ? make(e.state) : Array{}};
}

/// Results of one time step.
struct Steps {
  RecurrentExtents extents;
  TimeSteps gates, cell, cell_tanh, outputs;

  explicit Steps(Saved& saved)
      : extents(saved.extents),
        gates(saved.gates),
        cell(saved.cell),
        cell_tanh(saved.cell_tanh),
        outputs(saved.outputs) {}
  void store(std::int64_t t) {
    for (TimeSteps* tensor : {&gates, &cell, &cell_tanh, &outputs}) tensor->store(t);
  }
};

/// i, f and o become their sigmoid, g its tanh.
void activate(const RecurrentExtents& e, std::span<float> gates) {
  const auto apply_to = [&](Elementary function, std::int64_t first, std::int64_t count) {
    apply(function, gate_extents(e, count), gate_columns(e, gates, first), gate_columns(e, gates, first));
  };
  apply_to(Elementary::sigmoid, 0, 2);
  apply_to(Elementary::tanh, 2, 1);
  apply_to(Elementary::sigmoid, 3, 1);
}

/// From the sums of inputs and biases, of which the states' is in steps.gates, to h' of step t, which is cast
/// as `output`.
void forward_step(const StepCaster& cast, const ConstArrayView& input, const ConstArrayView& cell_before,
                  const char* output, Steps& steps) {
  const RecurrentExtents& e = steps.extents;
  const std::span<float> gates = steps.gates.at(cast.time), cell = steps.cell.at(cast.time);
  const std::span<float> cell_tanh = steps.cell_tanh.at(cast.time), state = steps.outputs.at(cast.time);
  cast(gates, ".hidden");
  add(input, gates);
  cast(gates, ".gate_sum");
  activate(e, gates);
  cast(gates, ".gate");
  combine(Combination::product, gate_extents(e), gate_columns(e, gates, 1), gate_columns(e, cell_before),
          gate_columns(e, cell));
  combine(Combination::product, gate_extents(e), gate_columns(e, gates), gate_columns(e, gates, 2),
          gate_columns(e, state));
  cast(cell, ".kept");
  cast(state, ".added");
  add(state, cell);
  cast(cell, ".cell");
  apply(Elementary::tanh, cell, cell_tanh);
  cast(cell_tanh, ".cell_tanh");
  combine(Combination::product, gate_extents(e), gate_columns(e, gates, 3), gate_columns(e, cell_tanh),
          gate_columns(e, state));
  cast(state, output);
  steps.store(cast.time);
}

/// Gradients of h' (batch, hidden) and of the cell: what step t + 1 gave it, then all of it.
struct StepGradient {
  Array output;
  Array cell;
  Array through_tanh;
};

/// The gradients of the gates from those of h' and of the cell; `cell` becomes the part of the cell before.
void gate_gradients(const RecurrentExtents& e, const ConstArrayView& gates, const ConstArrayView& cell_before,
                    std::span<float> cell, std::span<float> sums) {
  const auto multiply = [&](const ConstColumns& a, const ConstColumns& b, const Columns& y) {
    combine(Combination::product, gate_extents(e), a, b, y);
  };
  const Columns own = gate_columns(e, cell);
  multiply(own, gate_columns(e, gates, 2), gate_columns(e, sums));
  multiply(own, gate_columns(e, cell_before), gate_columns(e, sums, 1));
  multiply(own, gate_columns(e, gates), gate_columns(e, sums, 2));
  multiply(own, gate_columns(e, gates, 1), own);
}

/// From the gradients of h' and of the cell to that of the gates' sums; `g.cell` becomes the part of the
/// cell before.
void backward_step(const StepCaster& cast, const Saved& saved, const ConstArrayView& cell_before,
                   StepGradient& g, std::span<float> sums) {
  const RecurrentExtents& e = saved.extents;
  const auto gates = at_time(saved.gates, cast.time), cell_tanh = at_time(saved.cell_tanh, cast.time);
  const std::span<float> output = g.output.values(), through_tanh = g.through_tanh.values();
  combine(Combination::product, gate_extents(e), gate_columns(e, output), gate_columns(e, cell_tanh),
          gate_columns(e, sums, 3));
  combine(Combination::product, gate_extents(e), gate_columns(e, output), gate_columns(e, gates, 3),
          gate_columns(e, through_tanh));
  cast(through_tanh, ".cell_tanh");
  combine(Combination::tanh_gradient, through_tanh, cell_tanh, through_tanh);
  cast(through_tanh, ".through_tanh");
  add(through_tanh, g.cell.values());
  cast(g.cell.values(), ".cell");
  gate_gradients(e, gates, cell_before, g.cell.values(), sums);
  cast(sums, ".gate");
  cast(g.cell.values(), ".kept");
  const auto through = [&](Combination gradient, std::int64_t first, std::int64_t count) {
    combine(gradient, gate_extents(e, count), gate_columns(e, sums, first), gate_columns(e, gates, first),
            gate_columns(e, sums, first));
  };
  through(Combination::sigmoid_gradient, 0, 2);
  through(Combination::tanh_gradient, 2, 1);
  through(Combination::sigmoid_gradient, 3, 1);
  cast(sums, ".gate_sum");
}

/// Weights as backward needs them.
struct Transposed {
  Array hidden;      // (4 hidden, state)
  Array projection;  // (state, hidden); empty without one
};

/// Results of backward through time.
struct Gradients {
  Array sums;    // (time, batch, 4 hidden): of the gates' sums, and so of both projections to the gates
  Array states;  // (time, batch, state): of the projected states; empty without a projection
};

/// The gradient of the state after a step, (batch, state), from that of the layer's output and of the gates'
/// sums of the next step, if there is one.
void state_gradient(const BackwardScope& scope, const StepCaster& cast, const ConstArrayView& from_above,
                    const Gradients& later, const Transposed& weights, Array& state) {
  if (cast.time + 1 == later.sums.extent(0)) return convert(from_above, state.view());
  multiply_rows(at_time(later.sums, cast.time + 1), weights.hidden, scope.policy().products, state.values());
  cast(state.values(), ".previous");
  add(from_above, state.values());
  cast(state.values(), ".state");
}

Gradients backward_through_time(const BackwardScope& scope, const std::string& name, const Saved& saved,
                                const Transposed& weights, const Array& gradient) {
  const RecurrentExtents& e = saved.extents;
  const bool projects = !weights.projection.empty();
  const DType storage = scope.casts().storage(Role::activation_gradient);
  Gradients found{Array({e.time, e.batch, 4 * e.hidden}, storage),
                  projects ? Array({e.time, e.batch, e.state}, storage) : Array{}};
  TimeSteps steps(found.sums);
  const Array zero = Array::zeros({e.batch, e.hidden}, saved.cell.dtype());
  StepGradient g{Array({e.batch, e.hidden}), Array::zeros({e.batch, e.hidden}), Array({e.batch, e.hidden})};
  Array projected({e.batch, e.state});
  Array& state = projects ? projected : g.output;
  StepCaster cast{scope.casts(), name, Role::activation_gradient};
  for (cast.time = e.time - 1; cast.time >= 0; --cast.time) {
    state_gradient(scope, cast, at_time(gradient, cast.time), found, weights, state);
    if (projects) {
      convert(state.view(), at_time(found.states, cast.time));
      multiply_rows(state.view(), weights.projection, scope.policy().products, g.output.values());
      cast(g.output.values(), ".unprojected");
    }
    const auto cell_before = cast.time == 0 ? zero.view() : at_time(saved.cell, cast.time - 1);
    backward_step(cast, saved, cell_before, g, steps.at(cast.time));
    steps.store(cast.time);
  }
  return found;
}

/// Weights of the layer on the tape; the projection's is that of a layer that has one.
struct Weights {
  HiddenWeights hidden;
  std::optional<TensorRef> projection;
};

std::shared_ptr<Saved> forward(const Operation& operation, const std::string& name, TensorRef input,
                               const Weights& weights, const RecurrentExtents& extents) {
  const DType storage = operation.casts().storage(Role::activation);
  const bool projects = weights.projection.has_value();
  auto saved = std::make_shared<Saved>(
      make_saved(extents, storage, projects ? Projection::present : Projection::absent));
  Steps steps(*saved);
  TimeSteps projected(projects ? saved->projected : saved->outputs);
  const Array no_state = Array::zeros({extents.batch, extents.state}, storage);
  const Array no_cell = Array::zeros({extents.batch, extents.hidden}, storage);
  StepCaster cast{operation.casts(), name, Role::activation};
  for (; cast.time < extents.time; ++cast.time) {
    const auto before = [&](const Array& tensor, const Array& zero) {
      return cast.time == 0 ? zero.view() : at_time(tensor, cast.time - 1);
    };
    project_state(operation, weights.hidden, before(saved->states(), no_state), steps.gates.at(cast.time));
    forward_step(cast, at_time(operation.value(input), cast.time), before(saved->cell, no_cell),
                 projects ? ".unprojected" : "", steps);
    if (!projects) continue;
    const std::span<float> state = projected.at(cast.time);
    multiply_rows(at_time(std::as_const(saved->outputs), cast.time), operation.value(*weights.projection),
                  operation.policy().products, state);
    cast(state, "");
    projected.store(cast.time);
  }
  return saved;
}

void add_gradients(BackwardScope& scope, const std::string& name, TensorRef input, const Weights& weights,
                   const Saved& saved, const Array& gradient) {
  const Transposed transposes{transposed(scope.value(weights.hidden.weight)),
                              weights.projection ? transposed(scope.value(*weights.projection)) : Array{}};
  Gradients found = backward_through_time(scope, name, saved, transposes, gradient);
  add_hidden_gradients(scope, weights.hidden, saved.states(), found.sums);
  if (weights.projection) {
    const RowProduct product{saved.outputs.view(), found.states.view(), saved.extents.hidden,
                             saved.extents.state};
    scope.add_gradient(*weights.projection, weight_gradient(product, scope.policy().products));
  }
  scope.add_gradient(input, std::move(found.sums), Rounds::no);
}

TensorRef run_lstm(Tape& tape, const std::string& name, TensorRef x, const RecurrentParameters& parameters,
                   Parameter* projection) {
  const RecurrentExtents extents = recurrent_extents(tape, name, x, parameters, 4, projection);
  TensorRef input = linear(tape, name + ".input", x, {parameters.input_weight, parameters.input_bias});
  const Operation operation = tape.operation("lstm", name, {&input});
  Weights weights{
      {operation.parameter(parameters.hidden_weight), operation.parameter(parameters.hidden_bias)}, {}};
  if (projection != nullptr) weights.projection = operation.parameter(*projection);
  const auto saved = forward(operation, name, input, weights, extents);
  const auto backward = [name, input, weights, saved](BackwardScope& scope, Array gradient) {
    add_gradients(scope, name, input, weights, *saved, gradient);
  };
  return operation.record({.value = saved->states().clone(), .rounds = Rounds::no, .backward = backward});
}

}  // namespace
}  // namespace lstm_layer

TensorRef lstm(Tape& tape, const std::string& name, TensorRef x, const RecurrentParameters& parameters) {
  return lstm_layer::run_lstm(tape, name, x, parameters, nullptr);
}

TensorRef projected_lstm(Tape& tape, const std::string& name, TensorRef x,
                         const RecurrentParameters& parameters, Parameter& projection) {
  return lstm_layer::run_lstm(tape, name, x, parameters, &projection);
}

}  // namespace halfscope
