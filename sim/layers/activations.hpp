// The activation functions, element by element.
#pragma once

#include "sim/tape/tape.hpp"

namespace halfscope {

/// y = max(x, 0): exact in every format.
TensorRef relu(Tape& tape, const std::string& name, TensorRef x);

/// y = x where x > 0, slope * x elsewhere, rounded once; the gradient is g or slope * g by the same rule. A
/// NaN stays one. Throws InvalidArgument for a slope that is not finite.
TensorRef leaky_relu(Tape& tape, const std::string& name, TensorRef x, float slope);

/// y = 1 / (1 + exp(-x)), rounded once; the gradient is g (y (1 - y)), of the rounded y. In FP16 y is 1, and
/// the gradient 0, from x = 8.32 on.
TensorRef sigmoid(Tape& tape, const std::string& name, TensorRef x);

/// y = tanh(x), rounded once; the gradient is g (1 - y y), of the rounded y.
TensorRef tanh(Tape& tape, const std::string& name, TensorRef x);

/// y = x / (1 + exp(-x)), also called swish (Elfwing et al., 2018), in FP32, rounded once; the gradient is
/// g s (1 + x (1 - s)) with s = sigmoid(x) in FP32.
TensorRef silu(Tape& tape, const std::string& name, TensorRef x);

/// Forms of GELU (Hendrycks & Gimpel, 2016).
enum class Gelu : std::uint8_t {
  erf,   ///< x (1 + erf(x / sqrt(2))) / 2
  tanh,  ///< x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
};
/// In FP32, rounded once.
TensorRef gelu(Tape& tape, const std::string& name, TensorRef x, Gelu form = Gelu::erf);

}  // namespace halfscope
