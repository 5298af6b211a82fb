// Gated recurrent units over time (Cho et al., EMNLP 2014).
#pragma once

#include "sim/layers/recurrent.hpp"

namespace halfscope {

/// The states (time, batch, hidden) after each step, from x (time, batch, in) and a zero state. Gates r
/// (reset), z (update), n (candidate) in this order, as PyTorch has them:
///   r, z = sigmoid(x W + b + h V + c);  n = tanh(x W + b + r (h V + c));  h' = n + z (h - n).
/// Every operation's output is rounded as an activation and every gradient as an activation gradient, time
/// step by time step; gradients that meet in a state are added in FP32 and rounded once. x W + b of all
/// time steps is one product, of h V one per step; each weight's gradient is one sum over all steps.
TensorRef gru(Tape& tape, const std::string& name, TensorRef x, const RecurrentParameters& parameters);

}  // namespace halfscope
