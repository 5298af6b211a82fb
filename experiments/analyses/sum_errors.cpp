// Sums of terms as walks through the binades of a format.
#include "experiments/analyses/sum_errors.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace sum_errors {
namespace {

/// Mean and mean square.
struct Moments {
  double mean = 0, square = 0;
  [[nodiscard]] double variance() const { return std::max(0.0, square - mean * mean); }
};

double identity(double x) {
  return x;
}

template <typename Value>
Moments moments_of(std::span<const float> sample, const Value& value) {
  Moments sums;
  for (const float term : sample) {
    const double x = value(static_cast<double>(term));
    sums.mean += x;
    sums.square += x * x;
  }
  const auto size = static_cast<double>(sample.size());
  return {sums.mean / size, sums.square / size};
}

/// Expected sum of so many terms, and its error: what is lost on average, and the variance of the rest.
struct Walk {
  double sum = 0, bias = 0, variance = 0;
  bool overflows = false;
};

double spacing_at(const FloatFormat& format, double magnitude) {
  const int exponent = std::max(std::ilogb(magnitude), format.min_exponent());
  return std::ldexp(1.0, exponent - format.mantissa_bits);
}

/// Ties go up as often as down.
double rounded(double x, double spacing) {
  const double steps = x / spacing, below = std::floor(steps);
  const double fraction = steps - below;
  return spacing * (below + (fraction == 0.5 ? 0.5 : fraction > 0.5 ? 1.0 : 0.0));
}

double largest_number(const FloatFormat& format) {
  return std::ldexp(2.0, format.max_exponent()) -
         spacing_at(format, std::ldexp(1.0, format.max_exponent())) / 2;
}

/// Adds until a magnitude of `sum` that grows by `step` with each, or as a random walk of `square` does, has
/// reached `edge`.
double adds_to(double edge, double sum, double step, double square, double done) {
  const double by_drift = step == 0 ? INFINITY : (edge - std::fabs(sum)) / std::fabs(step);
  const double by_walk = square == 0 ? INFINITY : edge * edge / square - done;
  return std::ceil(std::max(1.0, std::min(by_drift, by_walk > 0 ? by_walk : INFINITY)));
}

Walk sequential(std::span<const float> sample, double count, const FloatFormat& format) {
  const Moments terms = moments_of(sample, identity);
  Walk walk;
  for (double done = 0; done < count && !walk.overflows;) {
    const double magnitude = std::max(
        std::fabs(walk.sum), std::sqrt(std::max(done, 1.0) * terms.variance() + terms.mean * terms.mean));
    const double spacing = spacing_at(format, magnitude);
    const Moments moved = moments_of(sample, [&](double x) { return rounded(x, spacing); });
    const Moments errors = moments_of(sample, [&](double x) { return rounded(x, spacing) - x; });
    const double edge = std::ldexp(1.0, std::ilogb(magnitude) + 1);
    const double adds = std::min(count - done, adds_to(edge, walk.sum, moved.mean, terms.variance(), done));
    walk.sum += adds * moved.mean;
    walk.bias += adds * errors.mean;
    walk.variance += adds * errors.variance();
    walk.overflows = std::fabs(walk.sum) >= largest_number(format);
    done += adds;
  }
  return walk;
}

/// Variance of one add's error: uniform over the spacing.
double add_variance(const FloatFormat& format, double magnitude) {
  return magnitude == 0 ? 0 : std::pow(spacing_at(format, magnitude), 2) / 12;
}

double magnitude_of(const Moments& terms, double count) {
  return std::sqrt(std::pow(count * terms.mean, 2) + count * terms.variance());
}

Walk pairwise(const Moments& terms, double count, const FloatFormat& format) {
  Walk walk{.sum = count * terms.mean};
  for (double half = 1; half < count; half *= 2)
    walk.variance += count / (2 * half) * add_variance(format, magnitude_of(terms, 2 * half));
  walk.overflows = std::fabs(walk.sum) >= largest_number(format);
  return walk;
}

Walk chunked(std::span<const float> sample, double count, const AccumulateModel& model) {
  const double chunk = std::min(count, static_cast<double>(model.chunk)), chunks = count / chunk;
  const Walk one = sequential(sample, chunk, model.format);
  return {chunks * one.sum, chunks * one.bias, chunks * one.variance, one.overflows};
}

Walk compensated(const Moments& terms, double count, const FloatFormat& format) {
  const double sum = count * terms.mean;
  return {sum, 0, add_variance(format, magnitude_of(terms, count)), std::fabs(sum) >= largest_number(format)};
}

Walk walk_of(std::span<const float> sample, double count, const AccumulateModel& model) {
  check_reduction_model(model);
  if (model.order == AccumulateOrder::chunked) return chunked(sample, count, model);
  if (model.order != AccumulateOrder::pairwise && model.order != AccumulateOrder::kahan)
    return sequential(sample, count, model.format);
  const Moments terms = moments_of(sample, identity);
  return model.order == AccumulateOrder::kahan ? compensated(terms, count, model.format)
                                               : pairwise(terms, count, model.format);
}

}  // namespace
}  // namespace sum_errors

SumError expected_error(std::span<const float> sample, std::int64_t count, const AccumulateModel& model) {
  using namespace sum_errors;
  const auto n = static_cast<double>(count);
  const Walk walk = walk_of(sample, n, model);
  const Moments terms = moments_of(sample, identity);
  return {std::sqrt(walk.bias * walk.bias + walk.variance) / magnitude_of(terms, n), walk.overflows};
}

NormError expected_norm_error(std::span<const float> sample, std::int64_t count,
                              const AccumulateModel& model) {
  using namespace sum_errors;
  const auto n = static_cast<double>(count);
  const Walk mean = walk_of(sample, n, model);
  if (mean.overflows) return {INFINITY, INFINITY};
  const Moments exact = moments_of(sample, identity);
  std::vector<float> squares;
  for (const float x : sample) {
    const double deviation = static_cast<double>(x) - mean.sum / n;
    const double stored = rounded(deviation, spacing_at(model.format, std::fabs(deviation)));
    squares.push_back(static_cast<float>(stored * stored));
  }
  const Walk variance = walk_of(squares, n, model);
  return {.variance = variance.overflows ? INFINITY : variance.sum / n / exact.variance(),
          .shift = (exact.mean - mean.sum / n) / std::sqrt(exact.variance())};
}

}  // namespace halfscope
