// Confidence interval of a mean over few values, such as a metric's over seeds.
#pragma once

#include <vector>

namespace halfscope {

/// Half the width of the two-sided 95 % Student interval of a mean over `values` (two or more).
[[nodiscard]] double confidence_95(const std::vector<double>& values);

/// Half the width of the two-sided 95 % interval of the difference between the means of two independent
/// samples (two values or more each), with Welch's degrees of freedom.
[[nodiscard]] double welch_95(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace halfscope
