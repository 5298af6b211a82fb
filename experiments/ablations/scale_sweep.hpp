// The window of usable loss scales: one arm per power of two.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// A classifier at every constant scale from 2^-4 to 2^24, none of which skips a step; dynamic scaling; and
/// 2^18 with skipping but without backing off.
[[nodiscard]] Experiment make_scale_sweep();

}  // namespace halfscope
