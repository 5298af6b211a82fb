// Errors of sums in closed form: an addend below half the spacing of the partial sum is lost.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/arithmetic/accumulate.hpp>

namespace halfscope {

struct SumError {
  double relative = 0;     ///< root mean square of the error over that of the exact sum
  bool overflows = false;  ///< the mean sum is beyond the format's largest number
};

/// Expected error of a sum of `count` terms drawn from `sample`, independent of each other.
///
/// A sequential sum walks through the binades. In that of [2^e, 2^(e+1)) a format with p bits of significand
/// has the spacing h = 2^(e + 1 - p), an add moves the sum by h round(x / h) instead of x, and what that
/// loses on average adds up, while its scatter adds up in squares. A chunked sum does so within each chunk, a
/// pairwise one once for each of its log2 n levels, a compensated one in its last add alone.
/// Throws InvalidArgument for the orders of products.
[[nodiscard]] SumError expected_error(std::span<const float> sample, std::int64_t count,
                                      const AccumulateModel& model);

}  // namespace halfscope
