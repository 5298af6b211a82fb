// Confidence interval of a mean over few values, such as a metric's over seeds.
#pragma once

#include <vector>

namespace halfscope {

/// Half the width of the two-sided 95 % Student interval of a mean over `values` (two or more).
[[nodiscard]] double confidence_95(const std::vector<double>& values);

}  // namespace halfscope
