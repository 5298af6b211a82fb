// Adds up magnitudes, squares and errors, binade by binade, in units of the largest binade.
#include <halfscope/stats/what_if.hpp>

#include <cmath>
#include <optional>

namespace halfscope {
namespace {

constexpr double mean_magnitude = 3.0 / 2.0;   // mean of uniform magnitudes in [1, 2)
constexpr double mean_square = 7.0 / 3.0;      // and of their squares
constexpr double rounding_error = 1.0 / 12.0;  // mean square of a rounding, in units of the spacing squared

/// Sum of the squares of a binade's values, in units of its 4^exponent.
double squares(const BinadeCounts& counts) {
  const auto powers = static_cast<double>(counts.at_power_of_two);
  return powers + mean_square * (static_cast<double>(counts.all) - powers);
}

/// Sum of the magnitudes of a binade's values, in units of its 2^exponent.
double magnitudes(const BinadeCounts& counts) {
  const auto powers = static_cast<double>(counts.at_power_of_two);
  return powers + mean_magnitude * (static_cast<double>(counts.all) - powers);
}

/// Sum of the magnitudes that a cast to `format` flushes.
double flushed_magnitudes(const BinadeCounts& counts, const FloatFormat& format, int binade) {
  const FlushEdge flush = flush_edge(format);
  if (binade != flush.binade) return binade < flush.binade ? magnitudes(counts) : 0;
  return flush.only_powers
             ? static_cast<double>(counts.at_power_of_two)
             : magnitudes(counts) - mean_magnitude * static_cast<double>(counts.rounds_to_normal);
}

/// Sum of the squared errors of a cast to `format` that flushes the numbers or makes them subnormal.
double squared_errors(const BinadeCounts& counts, const FloatFormat& format, int binade) {
  if (binade >= format.min_exponent()) return 0;
  const FlushEdge flush = flush_edge(format);
  if (binade < flush.binade) return squares(counts);
  const bool next_to_normal = binade == format.min_exponent() - 1;
  const auto normal = static_cast<double>(next_to_normal ? counts.rounds_to_normal : 0);
  if (!flush.only_powers) return squares(counts) - mean_square * normal;
  const auto powers = static_cast<double>(counts.at_power_of_two);
  const double spacing = std::ldexp(1.0, format.lowest_exponent() - binade);
  const double rounded =
      rounding_error * spacing * spacing * (static_cast<double>(counts.all) - powers - normal);
  return binade == flush.binade ? powers + rounded : rounded;
}

/// Index of the last binade that holds a number; nothing where none does.
std::optional<std::size_t> highest_of(std::span<const BinadeCounts> binades) {
  for (std::size_t i = binades.size(); i > 0; --i) {
    if (binades[i - 1].all > 0) return i - 1;
  }
  return std::nullopt;
}

}  // namespace

double underflow_error(const BinadeRange& range, const FloatFormat& format, int scale_log2) {
  const std::optional<std::size_t> highest = highest_of(range.binades);
  if (!highest) return 0;
  double values = 0, errors = 0;
  for (std::size_t i = 0; i <= *highest; ++i) {
    const BinadeCounts& counts = range.binades[i];
    if (counts.all == 0) continue;
    const double unit = std::ldexp(1.0, 2 * (static_cast<int>(i) - static_cast<int>(*highest)));
    values += unit * squares(counts);
    errors += unit * squared_errors(counts, format, range.first_exponent + static_cast<int>(i) + scale_log2);
  }
  return std::sqrt(errors / values);
}

double underflow_error(const ExponentHistogram& histogram, int scale_log2) {
  return underflow_error(filled_binades(histogram), histogram.format(), scale_log2);
}

double flushed_magnitude(const BinadeRange& range, const FloatFormat& format, int scale_log2) {
  const std::optional<std::size_t> highest = highest_of(range.binades);
  if (!highest) return 0;
  double all = 0, flushed = 0;
  for (std::size_t i = 0; i <= *highest; ++i) {
    const BinadeCounts& counts = range.binades[i];
    const double unit = std::ldexp(1.0, static_cast<int>(i) - static_cast<int>(*highest));
    all += unit * magnitudes(counts);
    flushed +=
        unit * flushed_magnitudes(counts, format, range.first_exponent + static_cast<int>(i) + scale_log2);
  }
  return flushed / all;
}

double flushed_magnitude(const ExponentHistogram& histogram, int scale_log2) {
  return flushed_magnitude(filled_binades(histogram), histogram.format(), scale_log2);
}

}  // namespace halfscope
