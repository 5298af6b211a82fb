// Takes the predictions of a dense detector out of its feature maps, one row each.
#pragma once

#include <span>

#include "sim/tape/tape.hpp"

namespace halfscope {

/// Which numbers of a prediction are wanted.
struct PredictionSlice {
  std::int64_t size = 1;   ///< numbers per prediction; a map has a whole number of them in its channels
  std::int64_t first = 0;  ///< the first number that is wanted
  std::int64_t count = 1;
};

/// y (batch * predictions of all maps, count): for each image the predictions of the first map (batch,
/// height, width, channels), cell by cell, then those of the next. Exact in every format. Throws
/// InvalidArgument where maps and slice do not fit.
TensorRef gather_predictions(Tape& tape, const std::string& name, std::span<const TensorRef> maps,
                             const PredictionSlice& slice);

}  // namespace halfscope
