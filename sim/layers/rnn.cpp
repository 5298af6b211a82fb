// The simple recurrent layer as a loop of operations, each of which the tape sees.
#include <fmt/format.h>

#include <numeric>

#include "sim/layers/layers.hpp"

namespace halfscope {
namespace {

/// Rows of step `time` of a tensor (time, batch, hidden).
TensorRef step_of(Tape& tape, const std::string& name, TensorRef x, const RecurrentExtents& e,
                  std::int64_t time) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(e.batch));
  std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(time * e.batch));
  return take_rows(tape, name, x, {.rows = rows, .columns = e.hidden});
}

/// (time, batch, hidden) from one tensor (batch, hidden) per step.
TensorRef stack(Tape& tape, const std::string& name, std::span<const TensorRef> steps,
                const RecurrentExtents& e) {
  const TensorRef beside = concat_channels(tape, name + ".beside", steps);
  std::vector<std::int32_t> rows;
  for (std::int64_t time = 0; time < e.time; ++time) {
    for (std::int64_t b = 0; b < e.batch; ++b) rows.push_back(static_cast<std::int32_t>(b * e.time + time));
  }
  return take_rows(tape, name, beside,
                   {.rows = rows, .columns = e.hidden, .shape = {e.time, e.batch, e.hidden}});
}

}  // namespace

TensorRef rnn(Tape& tape, const std::string& name, TensorRef x, const RecurrentParameters& parameters) {
  const RecurrentExtents e = recurrent_extents(tape, name, x, parameters, 1);
  const TensorRef input = linear(tape, name + ".input", x, {parameters.input_weight, parameters.input_bias});
  TensorRef state = tape.input(name + ".zero", Array::zeros({e.batch, e.hidden}));
  std::vector<TensorRef> states;
  for (std::int64_t time = 0; time < e.time; ++time) {
    const std::string step = fmt::format("{}.{}", name, time);
    const TensorRef own = step_of(tape, step + ".input", input, e, time);
    const TensorRef hidden =
        linear(tape, step + ".hidden", state, {parameters.hidden_weight, parameters.hidden_bias});
    state = tanh(tape, step + ".state", add_residual(tape, step + ".sum", own, hidden));
    states.push_back(state);
  }
  return stack(tape, name, states, e);
}

}  // namespace halfscope
