// Tensors that no layer makes: a leaf with a gradient, and a scalar loss with a test's own backward.
#pragma once

#include <string>
#include <utility>

#include "sim/tape/tape.hpp"

namespace halfscope {

/// A parameter as a layer's input.
inline TensorRef leaf(Tape& tape, Parameter& parameter) {
  return tape.operation("input", parameter.name).parameter(parameter);
}

/// A loss of 0.
inline TensorRef loss_with(Tape& tape, Backward backward, const std::string& name = "loss") {
  return tape.operation("total_loss", name)
      .record({.value = Array::zeros({}), .rounds = Rounds::no, .backward = std::move(backward)});
}

}  // namespace halfscope
