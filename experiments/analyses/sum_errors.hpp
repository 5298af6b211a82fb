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

/// Statistics of a normalisation beside the exact ones.
struct NormError {
  double variance = 1;  ///< the computed variance over the exact one; infinity where a sum overflows
  double shift = 0;     ///< the exact mean less the computed one, in standard deviations
};

/// Expected statistics of `count` numbers drawn from `sample`, independent of each other: their sum, and that
/// of their squared deviations from the mean so computed, as `expected_error` walks.
///
/// A mean that is lost moves the deviations, whose squares then hold its square: the variance of numbers near
/// their mean comes out too small, that of numbers far from 0 too large.
/// Throws InvalidArgument for the orders of products.
[[nodiscard]] NormError expected_norm_error(std::span<const float> sample, std::int64_t count,
                                            const AccumulateModel& model);

}  // namespace halfscope
