// Error that underflow leaves in a cast at any power-of-two scale, from the exponent histogram.
#pragma once

#include <halfscope/stats/exponent_histogram.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {

/// ||cast(S x) / S - x|| over the elements that the cast flushes or makes subnormal, relative to ||x||, for
/// S = 2^scale_log2 and nearest_even; x are the finite elements. From 0 to 1, falling as the scale grows; 0
/// where all are zero.
///
/// An estimate: magnitudes are taken to be uniform within their binade, but for the powers of two, which are
/// counted. A flushed element loses itself, a subnormal one errs by the smallest subnormal number over
/// sqrt(12).
[[nodiscard]] double underflow_error(const ExponentHistogram& histogram, int scale_log2);

/// The same of binades alone, counted at the edges of `format`.
[[nodiscard]] double underflow_error(const BinadeRange& range, const FloatFormat& format, int scale_log2);

}  // namespace halfscope
