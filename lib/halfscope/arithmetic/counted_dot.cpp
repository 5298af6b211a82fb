// Walks through the steps of a dot product and watches the sum.
#include <halfscope/arithmetic/counted_dot.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/arithmetic/operations.hpp>
#include <halfscope/core/detail/equal_sizes.hpp>

namespace halfscope {
namespace {

bool has_nonzero_product(std::span<const float> a, std::span<const float> b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != 0 && b[i] != 0) return true;
  }
  return false;
}

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

/// Adds up `width` products at a time as `add(x, y, sum)` does.
template <typename Add>
float count_steps(std::span<const float> a, std::span<const float> b, float sum, std::size_t width,
                  ReductionCounters& counters, Add&& add) {
  ReductionCounters here{.reductions = 1, .terms = static_cast<std::int64_t>(a.size())};
  for (std::size_t first = 0; first < a.size(); first += width) {
    const std::size_t count = std::min(width, a.size() - first);
    const auto x = a.subspan(first, count), y = b.subspan(first, count);
    const float next = add(x, y, sum);
    if (next == sum && has_nonzero_product(x, y)) ++here.stagnated;
    const bool from_finite = std::isfinite(sum) && all_finite(x) && all_finite(y);
    if (!std::isfinite(next) && from_finite) {
      here.first_overflow = static_cast<std::int64_t>(first / width);
      here.overflowed = 1;
    }
    if (std::isfinite(next)) here.largest_partial_sum = std::max(here.largest_partial_sum, std::fabs(next));
    sum = next;
  }
  counters.merge(here);
  return sum;
}

}  // namespace

float counted_dot(std::span<const float> a, std::span<const float> b, float c, const TensorCoreStep& step,
                  ReductionCounters& counters) {
  detail::check_equal_sizes("counted_dot", a.size(), b.size());
  return count_steps(a, b, c, static_cast<std::size_t>(step.products), counters,
                     [&](auto x, auto y, float sum) { return fused_step(x, y, sum, step); });
}

float counted_fused_dot(std::span<const float> a, std::span<const float> b, const FloatFormat& format,
                        ReductionCounters& counters) {
  detail::check_equal_sizes("counted_fused_dot", a.size(), b.size());
  return count_steps(a, b, 0, 1, counters, [&](auto x, auto y, float sum) {
    return fma(x[0], y[0], sum, {.format = format}).value;
  });
}

void ReductionCounters::merge(const ReductionCounters& other) {
  reductions += other.reductions;
  terms = std::max(terms, other.terms);
  overflowed += other.overflowed;
  if (first_overflow < 0) {
    first_overflow = other.first_overflow;
  } else if (other.first_overflow >= 0) {
    first_overflow = std::min(first_overflow, other.first_overflow);
  }
  stagnated += other.stagnated;
  largest_partial_sum = std::max(largest_partial_sum, other.largest_partial_sum);
}

}  // namespace halfscope
