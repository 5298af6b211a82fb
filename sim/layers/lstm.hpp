// Long short-term memory over time (Hochreiter & Schmidhuber 1997; with forget gates).
#pragma once

#include "sim/layers/recurrent.hpp"

namespace halfscope {

/// The states (time, batch, hidden) after each step, from x (time, batch, in) and zero state and cell. Gates
/// i (input), f (forget), g (cell), o (output) in this order, as PyTorch has them:
///   i, f, o = sigmoid(x W + b + h V + c);  g = tanh(x W + b + h V + c);
///   cell' = f cell + i g;  h' = o tanh(cell').
/// Every operation's output is rounded as an activation and every gradient as an activation gradient, time
/// step by time step; gradients that meet in a state or a cell are added in FP32 and rounded once. x W + b
/// of all time steps is one product, of h V one per step; each weight's gradient is one sum over all steps.
TensorRef lstm(Tape& tape, const std::string& name, TensorRef x, const RecurrentParameters& parameters);

}  // namespace halfscope
