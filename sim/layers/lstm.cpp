// Forward through time and back again.
#include "sim/layers/lstm.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <halfscope/kernel/elementary.hpp>

#include "sim/layers/linear.hpp"
#include "sim/layers/matrix.hpp"

namespace halfscope {
namespace {

/// What backward needs of forward.
struct Saved {
  RecurrentExtents extents;
  Array gates;      // (time, batch, 4 hidden): i, f, g, o
  Array cell;       // (time, batch, hidden)
  Array cell_tanh;  // (time, batch, hidden)
  Array states{};   // (time, batch, hidden): h'
};

Saved make_saved(const RecurrentExtents& e) {
  return {e, Array({e.time, e.batch, 4 * e.hidden}), Array({e.time, e.batch, e.hidden}),
          Array({e.time, e.batch, e.hidden})};
}

/// Calls body(element of (batch, hidden), its gate i); its gates f, g and o follow at distances of `hidden`.
template <typename Body>
void for_elements(const RecurrentExtents& e, Body&& body) {
  const auto hidden = static_cast<std::size_t>(e.hidden);
  for (std::size_t row = 0; row < static_cast<std::size_t>(e.batch); ++row) {
    for (std::size_t i = 0; i < hidden; ++i) body(row * hidden + i, 4 * row * hidden + i);
  }
}

/// i, f and o become their sigmoid, g its tanh.
void activate(const RecurrentExtents& e, std::span<float> gates) {
  const auto n = static_cast<std::size_t>(e.hidden);
  for (std::size_t first = 0; first < gates.size(); first += 4 * n) {
    const auto input_forget = gates.subspan(first, 2 * n), cell = gates.subspan(first + 2 * n, n),
               output = gates.subspan(first + 3 * n, n);
    apply(Elementary::sigmoid, input_forget, input_forget);
    apply(Elementary::tanh, cell, cell);
    apply(Elementary::sigmoid, output, output);
  }
}

/// From the projections, of which the states' is in saved.gates, to the state after step t.
void forward_step(const StepCaster& cast, std::span<const float> input, std::span<const float> cell_before,
                  Saved& saved, std::span<float> state) {
  const auto n = static_cast<std::size_t>(saved.extents.hidden);
  const std::span<float> gates = at_time(saved.gates, cast.time), cell = at_time(saved.cell, cast.time);
  const std::span<float> cell_tanh = at_time(saved.cell_tanh, cast.time);
  cast(gates, ".hidden");
  for (std::size_t i = 0; i < gates.size(); ++i) gates[i] += input[i];
  cast(gates, ".gate_sum");
  activate(saved.extents, gates);
  cast(gates, ".gate");
  for_elements(saved.extents, [&](std::size_t i, std::size_t gate) {
    cell[i] = gates[gate + n] * cell_before[i];
    state[i] = gates[gate] * gates[gate + 2 * n];
  });
  cast(cell, ".kept");
  cast(state, ".added");
  for (std::size_t i = 0; i < cell.size(); ++i) cell[i] += state[i];
  cast(cell, ".cell");
  apply(Elementary::tanh, cell, cell_tanh);
  cast(cell_tanh, ".cell_tanh");
  for_elements(saved.extents,
               [&](std::size_t i, std::size_t gate) { state[i] = gates[gate + 3 * n] * cell_tanh[i]; });
  cast(state, "");
}

/// (batch, hidden): of h', and of the cell: what step t + 1 gave it, then all of it.
struct StepGradient {
  Array state;
  Array cell;
  Array through_tanh;
};

/// From the gradients of h' and of the cell to that of the gates' sums; `g.cell` becomes the part of the
/// cell before.
void backward_step(const StepCaster& cast, const Saved& saved, std::span<const float> cell_before,
                   StepGradient& g, std::span<float> sums) {
  const auto n = static_cast<std::size_t>(saved.extents.hidden);
  const auto gates = at_time(saved.gates, cast.time), cell_tanh = at_time(saved.cell_tanh, cast.time);
  for_elements(saved.extents, [&](std::size_t i, std::size_t gate) {
    sums[gate + 3 * n] = g.state[i] * cell_tanh[i];
    g.through_tanh[i] = g.state[i] * gates[gate + 3 * n];
  });
  cast(g.through_tanh.values(), ".cell_tanh");
  for (std::size_t i = 0; i < cell_tanh.size(); ++i) g.through_tanh[i] *= 1.0f - cell_tanh[i] * cell_tanh[i];
  cast(g.through_tanh.values(), ".through_tanh");
  for (std::size_t i = 0; i < cell_tanh.size(); ++i) g.cell[i] += g.through_tanh[i];
  cast(g.cell.values(), ".cell");
  for_elements(saved.extents, [&](std::size_t i, std::size_t gate) {
    sums[gate] = g.cell[i] * gates[gate + 2 * n];
    sums[gate + n] = g.cell[i] * cell_before[i];
    sums[gate + 2 * n] = g.cell[i] * gates[gate];
    g.cell[i] *= gates[gate + n];
  });
  cast(sums, ".gate");
  cast(g.cell.values(), ".kept");
  for_elements(saved.extents, [&](std::size_t, std::size_t gate) {
    for (const std::size_t sigmoid : {gate, gate + n, gate + 3 * n}) {
      sums[sigmoid] *= gates[sigmoid] * (1.0f - gates[sigmoid]);
    }
    sums[gate + 2 * n] *= 1.0f - gates[gate + 2 * n] * gates[gate + 2 * n];
  });
  cast(sums, ".gate_sum");
}

/// (time, batch, 4 hidden): the gradient of the gates' sums, and so of both projections, from that of the
/// states after each step.
Array backward_through_time(Tape& tape, const std::string& name, const Saved& saved,
                            const Array& transposed_weight, const Array& gradient) {
  const RecurrentExtents& e = saved.extents;
  Array sums({e.time, e.batch, 4 * e.hidden});
  const Array zero = Array::zeros({e.batch, e.hidden});
  StepGradient g{Array({e.batch, e.hidden}), Array::zeros({e.batch, e.hidden}), Array({e.batch, e.hidden})};
  StepCaster cast{tape.caster(), name, Role::activation_gradient};
  for (cast.time = e.time - 1; cast.time >= 0; --cast.time) {
    const auto from_above = at_time(gradient, cast.time);
    if (cast.time == e.time - 1) {
      std::copy(from_above.begin(), from_above.end(), g.state.data());
    } else {
      multiply_rows(at_time(sums, cast.time + 1), transposed_weight, tape.policy().products,
                    g.state.values());
      cast(g.state.values(), ".previous");
      for (std::size_t i = 0; i < g.state.size(); ++i) g.state[i] += from_above[i];
      cast(g.state.values(), ".state");
    }
    const auto cell_before = cast.time == 0 ? zero.values() : at_time(saved.cell, cast.time - 1);
    backward_step(cast, saved, cell_before, g, at_time(sums, cast.time));
  }
  return sums;
}

}  // namespace

TensorRef lstm(Tape& tape, const std::string& name, TensorRef x, const RecurrentParameters& parameters) {
  const RecurrentExtents extents = recurrent_extents(tape, name, x, parameters, 4);
  const TensorRef input = linear(tape, name + ".input", x, {parameters.input_weight, parameters.input_bias});
  const HiddenWeights weights{tape.parameter(parameters.hidden_weight),
                              tape.parameter(parameters.hidden_bias)};
  auto saved = std::make_shared<Saved>(make_saved(extents));
  Array states({extents.time, extents.batch, extents.hidden});
  const Array zero = Array::zeros({extents.batch, extents.hidden});
  StepCaster cast{tape.caster(), name, Role::activation};
  for (; cast.time < extents.time; ++cast.time) {
    const std::int64_t before = cast.time - 1;
    project_state(tape, weights, before < 0 ? zero.values() : at_time(std::as_const(states), before),
                  at_time(saved->gates, cast.time));
    forward_step(cast, at_time(tape.value(input), cast.time),
                 before < 0 ? zero.values() : at_time(std::as_const(saved->cell), before), *saved,
                 at_time(states, cast.time));
  }
  saved->states = states.clone();
  const auto backward = [name, input, weights, saved](Tape& t, Array gradient) {
    Array sums = backward_through_time(t, name, *saved, transposed(t.value(weights.weight)), gradient);
    add_hidden_gradients(t, weights, saved->states, sums);
    t.add_gradient(input, std::move(sums), Rounds::no);
  };
  return tape.record({.name = name, .value = std::move(states), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
