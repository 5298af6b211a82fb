// Counts of a cast at any power-of-two scale: exact, from the exponent histogram.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope {

/// Elements of a tensor after rounding 2^scale_log2 * x to a format with nearest_even.
struct WhatIf {
  int scale_log2 = 0;
  std::int64_t elements = 0;   ///< all: zeros and non-finite ones included
  std::int64_t nonzero = 0;    ///< finite and not zero before rounding
  std::int64_t flushed = 0;    ///< nonzero numbers that become zero: in FP16, |scaled| <= 2^-25
  std::int64_t subnormal = 0;  ///< nonzero numbers that become a nonzero subnormal
  /// Nonzero ones that round beyond the largest number, in FP16 |scaled| >= 65520, whether they become
  /// infinite, NaN or, in a format that saturates, that number.
  std::int64_t overflow = 0;

  friend bool operator==(const WhatIf&, const WhatIf&) = default;

  /// Shares of the nonzero finite elements, 0 where there are none.
  [[nodiscard]] double flushed_fraction() const { return of_nonzero(flushed); }
  [[nodiscard]] double subnormal_fraction() const { return of_nonzero(subnormal); }
  [[nodiscard]] double overflow_fraction() const { return of_nonzero(overflow); }
  /// `count` as a share of the nonzero finite elements, and of all.
  [[nodiscard]] double of_nonzero(std::int64_t count) const;
  [[nodiscard]] double of_all(std::int64_t count) const;
};

/// The highest binade, of the scaled number, in which a cast still flushes: of the numbers in it either the
/// powers of two alone (half the smallest number, which ties to zero), or, where a format has no subnormals,
/// all that do not round up to the smallest normal number.
struct FlushEdge {
  int binade = 0;
  bool only_powers = true;
};
[[nodiscard]] FlushEdge flush_edge(const FloatFormat& format);

/// The counts in the histogram's format at scale 2^scale_log2, any integer; the scaling itself is taken to be
/// exact.
[[nodiscard]] WhatIf what_if(const ExponentHistogram& histogram, int scale_log2);

/// Counters of consecutive binades, which may lie outside of float32's: those of a gradient without its loss
/// scale do.
struct BinadeRange {
  int first_exponent = 0;
  std::span<const BinadeCounts> binades;  ///< entry i: [2^(first_exponent + i), 2^(first_exponent + i + 1))
};

/// The binades of `histogram` from the first to the last that hold anything; the last of all where none does.
/// Valid as long as the histogram is.
[[nodiscard]] BinadeRange filled_binades(const ExponentHistogram& histogram);

/// The counts of binades alone, made at the edges of `format`: their elements are all that there are.
[[nodiscard]] WhatIf what_if(const BinadeRange& range, const FloatFormat& format, int scale_log2);

/// ||cast(S x) / S - x|| over the elements that the cast flushes or makes subnormal, relative to ||x||, for
/// S = 2^scale_log2 and nearest_even; x are the finite elements. From 0 to 1, falling as the scale grows; 0
/// where all are zero.
///
/// An estimate: magnitudes are taken to be uniform within their binade, but for the powers of two, which are
/// counted. A flushed element loses itself, a subnormal one errs by the smallest subnormal number over
/// sqrt(12).
[[nodiscard]] double underflow_error(const ExponentHistogram& histogram, int scale_log2);

/// The estimate of binades alone, counted at the edges of `format`.
[[nodiscard]] double underflow_error(const BinadeRange& range, const FloatFormat& format, int scale_log2);

/// Share of the sum of magnitudes in elements that the cast flushes, for S = 2^scale_log2: from 0 to 1,
/// falling as the scale grows; 0 where all are zero. The many small elements of a softmax's gradient have as
/// large a sum as its one large element, and next to none of its norm. An estimate as `underflow_error` is
/// one.
[[nodiscard]] double flushed_magnitude(const ExponentHistogram& histogram, int scale_log2);

/// The estimate of binades alone, counted at the edges of `format`.
[[nodiscard]] double flushed_magnitude(const BinadeRange& range, const FloatFormat& format, int scale_log2);

/// "0.10 %", or "<0.01 %" for a share that is not zero but too small to print.
[[nodiscard]] std::string share_text(double share);

}  // namespace halfscope
