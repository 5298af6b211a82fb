// The layers of attention: products of two tensors, scaled scores, softmax with a mask.
#pragma once

#include "sim/tape/tape.hpp"

namespace halfscope {

/// How the second operand of a product is stored.
enum class Operand : std::uint8_t { plain, transposed };

/// y (batch..., rows, columns) = a (batch..., rows, inner) b, matrix by matrix, b (batch..., inner, columns)
/// or, transposed, (batch..., columns, inner). Each number of y, and of both gradients, is one sum over the
/// shared axis in the policy's order of products. Throws InvalidArgument for shapes that do not fit.
TensorRef batched_matmul(Tape& tape, const std::string& name, TensorRef a, TensorRef b,
                         Operand second = Operand::plain);

/// y = softmax(x + mask) over the last axis, in FP32 but for the sum of exponentials, which adds up as the
/// policy's reduction model for the layer's name says. mask (x's shape) is added in FP32: 0 of what counts,
/// -1e4 of what does not, whose y is exactly 0 beside anything that counts; a row where nothing counts is
/// uniform. The gradient is y (g - sum of g y), the sum in FP32. Throws InvalidArgument for a mask of another
/// shape.
TensorRef masked_softmax(Tape& tape, const std::string& name, TensorRef x, const Array& mask);

/// y in the shape of x (..., time, channels): channels i and i + channels / 2 turned by the angle
/// t base^(-2 i / channels) at position t (RoPE, Su et al., 2021, in the order of channels of GPT-NeoX and of
/// Hugging Face's Llama), in FP32, rounded once. The gradient is turned back. Throws InvalidArgument for an
/// odd number of channels.
TensorRef rotary(Tape& tape, const std::string& name, TensorRef x, float base);

/// y = factor x, rounded once; exact where the factor is a power of two and nothing underflows.
TensorRef scaled(Tape& tape, const std::string& name, TensorRef x, float factor);

}  // namespace halfscope
