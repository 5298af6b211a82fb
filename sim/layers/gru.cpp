// Forward through time and back again.
#include "sim/layers/gru.hpp"

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
  Array hidden;      // (time, batch, 3 hidden): h V + c
  Array gates;       // (time, batch, 2 hidden): r, z
  Array candidate;   // (time, batch, hidden): n
  Array difference;  // (time, batch, hidden): h - n
  Array states{};    // (time, batch, hidden): h'
};

Saved make_saved(const RecurrentExtents& e) {
  return {e, Array({e.time, e.batch, 3 * e.hidden}), Array({e.time, e.batch, 2 * e.hidden}),
          Array({e.time, e.batch, e.hidden}), Array({e.time, e.batch, e.hidden})};
}

/// Calls body(row, first of 3 hidden, first of 2 hidden, first of hidden) for each example.
template <typename Body>
void for_rows(const RecurrentExtents& e, Body&& body) {
  for (std::int64_t row = 0; row < e.batch; ++row) {
    body(static_cast<std::size_t>(3 * row * e.hidden), static_cast<std::size_t>(2 * row * e.hidden),
         static_cast<std::size_t>(row * e.hidden));
  }
}

/// From the projections to the state after step t.
void forward_step(const StepCaster& cast, std::span<const float> input, std::span<const float> before,
                  Saved& saved, std::span<float> state) {
  const auto n = static_cast<std::size_t>(saved.extents.hidden);
  const std::span<float> hidden = at_time(saved.hidden, cast.time), gates = at_time(saved.gates, cast.time);
  const std::span<float> candidate = at_time(saved.candidate, cast.time);
  const std::span<float> difference = at_time(saved.difference, cast.time);
  cast(hidden, ".hidden");
  for_rows(saved.extents, [&](std::size_t three, std::size_t two, std::size_t) {
    for (std::size_t i = 0; i < 2 * n; ++i) gates[two + i] = input[three + i] + hidden[three + i];
  });
  cast(gates, ".gate_sum");
  apply(Elementary::sigmoid, gates, gates);
  cast(gates, ".gate");
  for_rows(saved.extents, [&](std::size_t three, std::size_t two, std::size_t one) {
    for (std::size_t i = 0; i < n; ++i) candidate[one + i] = gates[two + i] * hidden[three + 2 * n + i];
  });
  cast(candidate, ".reset");
  for_rows(saved.extents, [&](std::size_t three, std::size_t, std::size_t one) {
    for (std::size_t i = 0; i < n; ++i) candidate[one + i] += input[three + 2 * n + i];
  });
  cast(candidate, ".candidate_sum");
  apply(Elementary::tanh, candidate, candidate);
  cast(candidate, ".candidate");
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] = before[i] - candidate[i];
  cast(difference, ".difference");
  for_rows(saved.extents, [&](std::size_t, std::size_t two, std::size_t one) {
    for (std::size_t i = 0; i < n; ++i) state[one + i] = gates[two + n + i] * difference[one + i];
  });
  cast(state, ".update");
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += candidate[i];
  cast(state, "");
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
void backward_step(const StepCaster& cast, const Saved& saved, StepGradient& g, std::span<float> input,
                   std::span<float> hidden) {
  const auto n = static_cast<std::size_t>(saved.extents.hidden);
  const auto gates = at_time(saved.gates, cast.time), candidate = at_time(saved.candidate, cast.time);
  const auto difference = at_time(saved.difference, cast.time), projected = at_time(saved.hidden, cast.time);
  for_rows(saved.extents, [&](std::size_t, std::size_t two, std::size_t one) {
    for (std::size_t i = 0; i < n; ++i) {
      g.difference[one + i] = g.state[one + i] * gates[two + n + i];
      g.gates[two + n + i] = g.state[one + i] * difference[one + i];
    }
  });
  cast(g.difference.values(), ".difference");
  for (std::size_t i = 0; i < candidate.size(); ++i) g.candidate[i] = g.state[i] - g.difference[i];
  cast(g.candidate.values(), ".candidate");
  for (std::size_t i = 0; i < candidate.size(); ++i) g.candidate[i] *= 1.0f - candidate[i] * candidate[i];
  cast(g.candidate.values(), ".candidate_sum");
  for_rows(saved.extents, [&](std::size_t three, std::size_t two, std::size_t one) {
    for (std::size_t i = 0; i < n; ++i) {
      g.gates[two + i] = g.candidate[one + i] * projected[three + 2 * n + i];
      g.reset[one + i] = g.candidate[one + i] * gates[two + i];
    }
  });
  cast(g.gates.values(), ".gate");
  cast(g.reset.values(), ".hidden");
  for (std::size_t i = 0; i < gates.size(); ++i) g.gates[i] *= gates[i] * (1.0f - gates[i]);
  cast(g.gates.values(), ".gate_sum");
  for_rows(saved.extents, [&](std::size_t three, std::size_t two, std::size_t one) {
    for (std::size_t i = 0; i < 2 * n; ++i) input[three + i] = hidden[three + i] = g.gates[two + i];
    for (std::size_t i = 0; i < n; ++i) {
      input[three + 2 * n + i] = g.candidate[one + i];
      hidden[three + 2 * n + i] = g.reset[one + i];
    }
  });
}

/// The gradients of the input's projection and of the states' (time, batch, 3 hidden) from that of the
/// states after each step.
struct ProjectionGradients {
  Array input, hidden;
};
ProjectionGradients backward_through_time(Tape& tape, const std::string& name, const Saved& saved,
                                          const Array& transposed_weight, const Array& gradient) {
  const RecurrentExtents& e = saved.extents;
  ProjectionGradients result{Array({e.time, e.batch, 3 * e.hidden}), Array({e.time, e.batch, 3 * e.hidden})};
  StepGradient g{Array({e.batch, e.hidden}), Array({e.batch, e.hidden}), Array({e.batch, 2 * e.hidden}),
                 Array({e.batch, e.hidden}), Array({e.batch, e.hidden})};
  StepCaster cast{tape.caster(), name, Role::activation_gradient};
  for (cast.time = e.time - 1; cast.time >= 0; --cast.time) {
    const auto from_above = at_time(gradient, cast.time);
    if (cast.time == e.time - 1) {
      std::copy(from_above.begin(), from_above.end(), g.state.data());
    } else {
      multiply_rows(at_time(result.hidden, cast.time + 1), transposed_weight, tape.policy().products,
                    g.state.values());
      cast(g.state.values(), ".previous");
      for (std::size_t i = 0; i < g.state.size(); ++i) g.state[i] += g.difference[i] + from_above[i];
      cast(g.state.values(), ".state");
    }
    backward_step(cast, saved, g, at_time(result.input, cast.time), at_time(result.hidden, cast.time));
  }
  return result;
}

}  // namespace

TensorRef gru(Tape& tape, const std::string& name, TensorRef x, const RecurrentParameters& parameters) {
  const RecurrentExtents extents = recurrent_extents(tape, name, x, parameters, 3);
  const TensorRef input = linear(tape, name + ".input", x, {parameters.input_weight, parameters.input_bias});
  const HiddenWeights weights{tape.parameter(parameters.hidden_weight),
                              tape.parameter(parameters.hidden_bias)};
  auto saved = std::make_shared<Saved>(make_saved(extents));
  Array states({extents.time, extents.batch, extents.hidden});
  const Array zero = Array::zeros({extents.batch, extents.hidden});
  StepCaster cast{tape.caster(), name, Role::activation};
  for (; cast.time < extents.time; ++cast.time) {
    const auto before = cast.time == 0 ? zero.values() : at_time(std::as_const(states), cast.time - 1);
    project_state(tape, weights, before, at_time(saved->hidden, cast.time));
    forward_step(cast, at_time(tape.value(input), cast.time), before, *saved, at_time(states, cast.time));
  }

  saved->states = states.clone();
  const auto backward = [name, input, weights, saved](Tape& t, Array gradient) {
    ProjectionGradients gradients =
        backward_through_time(t, name, *saved, transposed(t.value(weights.weight)), gradient);
    add_hidden_gradients(t, weights, saved->states, gradients.hidden);
    t.add_gradient(input, std::move(gradients.input), Rounds::no);
  };
  return tape.record({.name = name, .value = std::move(states), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
