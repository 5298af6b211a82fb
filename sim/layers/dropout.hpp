// Dropout (Srivastava et al., JMLR 2014), scaled in training so that evaluation is the identity.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// y = x * mask / (1 - probability), where element i's mask is a pure function of the run's seed, the step,
/// the layer's name and i; in evaluation, and where `probability` is 0, x itself. Throws InvalidArgument
/// unless 0 <= probability < 1.
TensorRef dropout(Tape& tape, const std::string& name, TensorRef x, float probability);

}  // namespace halfscope
