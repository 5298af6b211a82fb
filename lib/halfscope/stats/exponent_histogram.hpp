// How many numbers of a tensor lie in each binade: exact, and the same in whatever order they are added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <halfscope/core/dtype.hpp>
#include <halfscope/kernel/histogram/histogram.hpp>

namespace halfscope {

/// Counts of floats by exponent, with zeros, infinities and NaNs beside them; nothing that is added is ever
/// left out. Beside each count stand those at the edges of one format, whose what-if they decide. A value:
/// copyable, comparable, mergeable.
class ExponentHistogram {
 public:
  static constexpr int first_exponent = lowest_binade;  ///< -149, the smallest FP32 subnormal
  static constexpr int last_exponent = highest_binade;

  ExponentHistogram() = default;
  explicit ExponentHistogram(const FloatFormat& format) : format_(format) {}
  /// From counts made elsewhere with the edges of `format`, such as those of a record.
  explicit ExponentHistogram(const HistogramCounts& counts, const FloatFormat& format = fp16)
      : format_(format), counts_(counts) {}

  void add(std::span<const float> values) { histogram(values, counts_, binade_edges(format_)); }
  /// Adds the counts of `other`, `times` times. Throws InvalidArgument where it was counted at the edges of
  /// another format.
  void merge(const ExponentHistogram& other, std::int64_t times = 1);

  /// The format at whose edges the counts were made.
  [[nodiscard]] const FloatFormat& format() const { return format_; }

  /// Elements with 2^exponent <= |x| < 2^(exponent + 1); 0 for an exponent that no float has.
  [[nodiscard]] std::int64_t count(int exponent) const { return binade(exponent).all; }
  /// The same with the counts at the edges of the binade; all 0 for an exponent that no float has.
  [[nodiscard]] BinadeCounts binade(int exponent) const;

  /// All counters; its binades are those from first_exponent to last_exponent.
  [[nodiscard]] const HistogramCounts& counts() const { return counts_; }

  [[nodiscard]] std::int64_t zeros() const { return counts_.zeros; }  ///< zeros of either sign
  [[nodiscard]] std::int64_t negative_zeros() const { return counts_.negative_zeros; }
  [[nodiscard]] std::int64_t infinities() const { return counts_.infinities; }
  [[nodiscard]] std::int64_t nans() const { return counts_.nans; }
  /// Finite elements other than zero: the denominator of the fractions.
  [[nodiscard]] std::int64_t nonzero() const;
  /// All that was added: nonzero() + zeros() + infinities() + nans().
  [[nodiscard]] std::int64_t elements() const;
  /// Largest magnitude of the finite elements, 0 where there are none.
  [[nodiscard]] float max_abs() const { return counts_.max_abs; }

  friend bool operator==(const ExponentHistogram&, const ExponentHistogram&) = default;

 private:
  FloatFormat format_ = fp16;
  HistogramCounts counts_;
};

/// `histogram.add(values)`, in as many threads as there are where the array is large.
void add_in_threads(ExponentHistogram& histogram, std::span<const float> values);

/// Adds `size` little-endian elements of any type in CPU memory. Many elements of 8 or 16 bits are
/// counted by code; `widen` turns others into floats a cache's worth at a time.
void add_in_threads(ExponentHistogram& histogram, DType type, const std::byte* elements, std::size_t size);

}  // namespace halfscope
