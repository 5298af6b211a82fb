// Summary of a tensor from one pass over it: counts by binade, energy and direction after rounding.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <halfscope/kernel/histogram/energy_histogram.hpp>
#include <halfscope/kernel/reduce/cosine.hpp>
#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope {

/// A tensor taken apart at multiples of this many elements gives the same summary, to the bit, as the whole.
inline constexpr std::int64_t summarise_block = std::int64_t{1} << 20;

/// Sums over a tensor x and its rounded copy q.
struct CosineTotals {
  double xx = 0, xq = 0, qq = 0;

  friend bool operator==(const CosineTotals&, const CosineTotals&) = default;
};

/// Counts of SummaryPass over a tensor or a part of it. A value: copyable, comparable, mergeable.
class TensorSummary {
 public:
  TensorSummary() = default;
  explicit TensorSummary(const FloatFormat& format) : histogram_(format) {}
  TensorSummary(const ExponentHistogram& histogram, const BinadeEnergies& energies,
                const CosineTotals& totals)
      : histogram_(histogram), energies_(energies), totals_(totals) {}

  /// Adds the part of the tensor that follows, `times` times. Throws InvalidArgument for a summary of another
  /// format.
  void merge(const TensorSummary& following, std::int64_t times = 1);

  [[nodiscard]] const ExponentHistogram& histogram() const { return histogram_; }
  /// Share of the sum of squares of the finite elements that the scale 2^scale_log2 flushes, to within a
  /// factor 1 +- 2^-14. 0 for a tensor of zeros.
  [[nodiscard]] double lost_energy(int scale_log2) const;
  /// Between the tensor and itself rounded at scale 1: 1 where the direction survives. Nothing where one of
  /// them is all zero or holds an infinity or NaN.
  [[nodiscard]] std::optional<double> cosine() const;

  friend bool operator==(const TensorSummary&, const TensorSummary&) = default;

 private:
  ExponentHistogram histogram_;
  BinadeEnergies energies_{};
  CosineTotals totals_;
};

/// Goes over a tensor once, in consecutive pieces of any size.
class SummaryPass {
 public:
  explicit SummaryPass(const FloatFormat& format);

  void add(std::span<const float> values);
  /// Summary of the elements added so far.
  [[nodiscard]] TensorSummary summary();

 private:
  void add_tile(std::span<const float> values);
  void end_block();

  EnergyHistogram found_;
  CosineSums block_;
  CosineTotals totals_;
  std::int64_t in_block_ = 0;
  FloatFormat format_;
};

}  // namespace halfscope
