// Embedding: a row of a table for every token.
#pragma once

#include <span>

#include "sim/tape.hpp"

namespace halfscope {

/// Token numbers of `leading` axes, row-major: (time, batch), say.
struct Tokens {
  std::span<const std::int32_t> values;
  Shape leading;
};

/// y (leading..., features) = the rows of table (vocabulary, features) at `tokens`: copies, exact in every
/// format. The table's gradient adds up the gradients of a token's positions in FP32, in ascending
/// order of position, and is rounded once. Throws InvalidArgument for a token out of range, or where the axes
/// hold another number of tokens.
TensorRef embedding(Tape& tape, const std::string& name, const Tokens& tokens, Parameter& table);

}  // namespace halfscope
