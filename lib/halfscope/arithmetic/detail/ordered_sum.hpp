// The orders in which sums of single terms add up, written once for host and device, and for one sum or one
// in each lane of a vector.
#pragma once

#include <cstdint>

#include <halfscope/format/round.hpp>

namespace halfscope {

/// Every add rounded to the nearest number of a format, ties to even. A replacement has the same two
/// functions: it may be faster for its format, or watch the sums.
struct RoundedAdds {
  RoundingGrid grid;
  [[nodiscard]] HALFSCOPE_HD float rounded(float x) const {
    return round_on_grid<Rounding::nearest_even>(x, grid);
  }
  [[nodiscard]] HALFSCOPE_HD float add(float a, float b) const { return rounded(a + b); }
};

/// The terms [first, last) of a sum; term k is a function's value at k.
struct TermRange {
  std::int64_t first = 0, last = 0;
};

/// sum + the terms, one by one.
template <typename Sum, typename Terms, typename Adds>
[[nodiscard]] HALFSCOPE_HD Sum sum_sequential(Sum sum, const Terms& term, TermRange range, Adds& adds) {
  for (std::int64_t k = range.first; k < range.last; ++k) sum = adds.add(sum, adds.rounded(term(k)));
  return sum;
}

/// sum + the sums of chunks, these adds in FP32.
template <typename Terms, typename Adds>
[[nodiscard]] HALFSCOPE_HD float sum_chunked(float sum, const Terms& term, TermRange range,
                                             std::int64_t chunk, Adds& adds) {
  const RoundedAdds fp32_adds{rounding_grid({})};  // FP32 already: makes NaNs the one NaN
  for (std::int64_t first = range.first; first < range.last; first += chunk) {
    const std::int64_t last = range.last - first < chunk ? range.last : first + chunk;
    sum = fp32_adds.add(sum, sum_sequential(0.0f, term, {first, last}, adds));
  }
  return sum;
}

/// With a compensation: y = x - e; t = s + y; e = (t - s) - y; s = t, each rounded.
template <typename Sum, typename Terms, typename Adds>
[[nodiscard]] HALFSCOPE_HD Sum sum_kahan(Sum sum, const Terms& term, TermRange range, Adds& adds) {
  Sum compensation{};
  for (std::int64_t k = range.first; k < range.last; ++k) {
    const Sum addend = adds.rounded(adds.rounded(term(k)) - compensation);
    const Sum next = adds.add(sum, addend);
    compensation = adds.rounded(adds.rounded(next - sum) - addend);
    sum = next;
  }
  return sum;
}

/// The tree whose left half is the largest power of two below its number of terms; 0 of none. Subtrees are
/// added as a binary counter carries: two of equal size as soon as both are complete, what is left at the end
/// from the smallest upwards.
template <typename Terms, typename Adds>
[[nodiscard]] HALFSCOPE_HD auto sum_pairwise(const Terms& term, TermRange range, Adds& adds) {
  using Sum = decltype(adds.rounded(term(range.first)));
  constexpr int most_levels = 63;
  Sum subtree[most_levels];
  const std::int64_t count = range.last - range.first;
  for (std::int64_t i = 0; i < count; ++i) {
    Sum sum = adds.rounded(term(range.first + i));
    int level = 0;
    for (; ((i >> level) & 1) != 0; ++level) sum = adds.add(subtree[level], sum);
    subtree[level] = sum;
  }
  Sum sum{};
  bool joined = false;
  for (int level = 0; (count >> level) != 0; ++level) {
    if (((count >> level) & 1) == 0) continue;
    sum = joined ? adds.add(subtree[level], sum) : subtree[level];
    joined = true;
  }
  return sum;
}

}  // namespace halfscope
