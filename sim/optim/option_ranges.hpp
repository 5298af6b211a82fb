// Ranges of options that optimizers share.
#pragma once

#include <limits>

#include "sim/options/field_range.hpp"

namespace halfscope {

inline constexpr FieldRange share_range{0, 1};
/// Bias correction divides by 1 - decay^step, in FP32.
inline constexpr FieldRange decay_range{0, 0x1.fffffep-1, "0 to less than 1"};
inline constexpr FieldRange epsilon_range{0, std::numeric_limits<float>::max()};

}  // namespace halfscope
