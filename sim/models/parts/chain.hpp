// Blocks of a network one after the other, each the input of the next.
#pragma once

#include <vector>

#include "sim/tape/tape.hpp"

namespace halfscope {

/// A block owns what it sees but the model's parameters.
struct ChainBlock {
  Segment run;
  double size = 1;  ///< size of its tensors relative to the other blocks' tensors
};

/// Runs x through the blocks. Where the tape has segments, all but the last of as many parts, of about equal
/// size, are checkpoints; the last part's tensors are what the backward pass begins with.
[[nodiscard]] TensorRef chain(Tape& tape, TensorRef x, const std::vector<ChainBlock>& blocks);

}  // namespace halfscope
