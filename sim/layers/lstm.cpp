// Forward through time and back again.
#include "sim/layers/layers.hpp"

#include <memory>
#include <utility>

#include "lib/nn/elementary.hpp"
#include "lib/nn/elementwise.hpp"

#include "sim/layers/matrix.hpp"

namespace halfscope {
namespace {

/// Results of forward that backward needs.
struct Saved {
  RecurrentExtents extents;
  Array gates;      // (time, batch, 4 hidden): i, f, g, o
  Array cell;       // (time, batch, hidden)
  Array cell_tanh;  // (time, batch, hidden)
  Array states;     // (time, batch, hidden): h'
};

Saved make_saved(const RecurrentExtents& e, DType storage) {
  const auto make = [&](std::int64_t gates) { return Array({e.time, e.batch, gates * e.hidden}, storage); };
  return {e, make(4), make(1), make(1), make(1)};
}

/// Results of one time step.
struct Steps {
  RecurrentExtents extents;
  TimeSteps gates, cell, cell_tanh, states;

  explicit Steps(Saved& saved)
      : extents(saved.extents),
        gates(saved.gates),
        cell(saved.cell),
        cell_tanh(saved.cell_tanh),
        states(saved.states) {}
  void store(std::int64_t t) {
    for (TimeSteps* tensor : {&gates, &cell, &cell_tanh, &states}) tensor->store(t);
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

/// From the projections, of which the states' is in steps.gates, to the state after step t.
void forward_step(const StepCaster& cast, const ConstArrayView& input, const ConstArrayView& cell_before,
                  Steps& steps) {
  const RecurrentExtents& e = steps.extents;
  const std::span<float> gates = steps.gates.at(cast.time), cell = steps.cell.at(cast.time);
  const std::span<float> cell_tanh = steps.cell_tanh.at(cast.time), state = steps.states.at(cast.time);
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
  cast(state, "");
  steps.store(cast.time);
}

/// (batch, hidden): of h', and of the cell: what step t + 1 gave it, then all of it.
struct StepGradient {
  Array state;
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
  const std::span<float> state = g.state.values(), through_tanh = g.through_tanh.values();
  combine(Combination::product, gate_extents(e), gate_columns(e, state), gate_columns(e, cell_tanh),
          gate_columns(e, sums, 3));
  combine(Combination::product, gate_extents(e), gate_columns(e, state), gate_columns(e, gates, 3),
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

/// (time, batch, 4 hidden): the gradient of the gates' sums, and so of both projections, from that of the
/// states after each step.
Array backward_through_time(Tape& tape, const std::string& name, const Saved& saved,
                            const Array& transposed_weight, const Array& gradient) {
  const RecurrentExtents& e = saved.extents;
  Array sums({e.time, e.batch, 4 * e.hidden}, tape.caster().storage(Role::activation_gradient));
  TimeSteps steps(sums);
  const Array zero = Array::zeros({e.batch, e.hidden}, saved.cell.dtype());
  StepGradient g{Array({e.batch, e.hidden}), Array::zeros({e.batch, e.hidden}), Array({e.batch, e.hidden})};
  StepCaster cast{tape.caster(), name, Role::activation_gradient};
  for (cast.time = e.time - 1; cast.time >= 0; --cast.time) {
    const auto from_above = at_time(gradient, cast.time);
    if (cast.time == e.time - 1) {
      convert(from_above, g.state.view());
    } else {
      multiply_rows(at_time(std::as_const(sums), cast.time + 1), transposed_weight, tape.policy().products,
                    g.state.values());
      cast(g.state.values(), ".previous");
      add(from_above, g.state.values());
      cast(g.state.values(), ".state");
    }
    const auto cell_before = cast.time == 0 ? zero.view() : at_time(saved.cell, cast.time - 1);
    backward_step(cast, saved, cell_before, g, steps.at(cast.time));
    steps.store(cast.time);
  }
  return sums;
}

}  // namespace

TensorRef lstm(Tape& tape, const std::string& name, TensorRef x, const RecurrentParameters& parameters) {
  const RecurrentExtents extents = recurrent_extents(tape, name, x, parameters, 4);
  const TensorRef input = linear(tape, name + ".input", x, {parameters.input_weight, parameters.input_bias});
  const HiddenWeights weights{tape.parameter(parameters.hidden_weight),
                              tape.parameter(parameters.hidden_bias)};
  const DType storage = tape.caster().storage(Role::activation);
  auto saved = std::make_shared<Saved>(make_saved(extents, storage));
  Steps steps(*saved);
  const Array zero = Array::zeros({extents.batch, extents.hidden}, storage);
  StepCaster cast{tape.caster(), name, Role::activation};
  for (; cast.time < extents.time; ++cast.time) {
    const auto before = [&](const Array& tensor) {
      return cast.time == 0 ? zero.view() : at_time(tensor, cast.time - 1);
    };
    project_state(tape, weights, before(saved->states), steps.gates.at(cast.time));
    forward_step(cast, at_time(tape.value(input), cast.time), before(saved->cell), steps);
  }
  Array states = saved->states.clone();
  const auto backward = [name, input, weights, saved](Tape& t, Array gradient) {
    Array sums = backward_through_time(t, name, *saved, transposed(t.value(weights.weight)), gradient);
    add_hidden_gradients(t, weights, saved->states, sums);
    t.add_gradient(input, std::move(sums), Rounds::no);
  };
  return tape.record({.name = name,
                      .kind = OperationKind::recurrent,
                      .value = std::move(states),
                      .rounds = Rounds::no,
                      .backward = backward});
}

}  // namespace halfscope
