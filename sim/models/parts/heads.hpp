// Heads of attention: cut out of positions, and joined again.
#pragma once

#include <cstdint>
#include <string>

#include "sim/tape/tape.hpp"

namespace halfscope {

/// (batch, heads, time, part) of x (batch, time, width): copies, exact in every format.
TensorRef split_heads(Tape& tape, const std::string& name, TensorRef x, std::int64_t heads);

/// (batch, time, width) of x (batch, heads, time, part), likewise.
TensorRef join_heads(Tape& tape, const std::string& name, TensorRef x);

/// (batch, heads, time, part) of x (batch, fewer heads, time, part): each head of x as often as is needed,
/// one beside the other. The copies' gradients are added in FP32 and rounded once.
TensorRef repeat_heads(Tape& tape, const std::string& name, TensorRef x, std::int64_t heads);

}  // namespace halfscope
