// The activation functions, element by element.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// y = max(x, 0): exact in every format.
TensorRef relu(Tape& tape, const std::string& name, TensorRef x);

/// y = tanh(x), rounded once; the gradient is g (1 - y y), of the rounded y.
TensorRef tanh(Tape& tape, const std::string& name, TensorRef x);

/// Forms of GELU (Hendrycks & Gimpel, 2016).
enum class Gelu : std::uint8_t {
  erf,   ///< x (1 + erf(x / sqrt(2))) / 2
  tanh,  ///< x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
};
/// In FP32, rounded once.
TensorRef gelu(Tape& tape, const std::string& name, TensorRef x, Gelu form = Gelu::erf);

}  // namespace halfscope
