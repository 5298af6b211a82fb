// The terms, the sum and the counters of a column, for the loops on the CPU, which have one in each lane of a
// vector, and on the device, which have one at a time: `Sum` is a vector here and a float there.
#pragma once

#include <type_traits>

#include <halfscope/arithmetic/detail/ordered_sum.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

namespace halfscope {

/// The terms of a column, whose `elements` have x(row), y(row) and center(). The last operation of each is
/// left unrounded, which the sum rounds.
template <typename Elements, typename Adds>
struct TermsOfColumn {
  Term term;
  Elements elements;
  Adds adds;

  [[nodiscard]] HALFSCOPE_HD auto operator()(std::int64_t row) const {
    const auto x = elements.x(row);
    if (term == Term::value) return x;
    if (term == Term::product) return x * elements.y(row);
    const auto deviation = adds.rounded(x - elements.center());
    return deviation * deviation;
  }
};

/// An integer for each sum.
template <typename Sum>
struct CountOf {
  using type = decltype(Sum{} == Sum{});
};
template <>
struct CountOf<float> {
  using type = std::int64_t;
};

/// Adds that count how the partial sums fare. Comparisons make masks of vectors, which `&` joins as it does
/// the bools of floats.
template <typename Sum, typename Adds>
struct CountedAdds {
  using Count = typename CountOf<Sum>::type;
  Adds adds;
  Count seen{}, stagnated{}, first_overflow = Count{} - 1;
  Sum largest{};

  [[nodiscard]] HALFSCOPE_HD Sum rounded(Sum x) const { return adds.rounded(x); }
  HALFSCOPE_HD Sum add(Sum sum, Sum term) {
    const Sum next = adds.add(sum, term), none{};
    const Sum magnitude = next < none ? -next : next;
    const auto stagnates = (next == sum) & (term != none);
    const auto grows = (next - next == none) & (magnitude > largest);
    const auto overflows =
        (next - next != none) & (sum - sum == none) & (term - term == none) & (first_overflow < 0);
    stagnated = stagnates ? stagnated + 1 : stagnated;
    largest = grows ? magnitude : largest;
    first_overflow = overflows ? seen : first_overflow;
    seen += 1;
    return next;
  }
  HALFSCOPE_HD void write(ColumnCounters* to) const {
    if constexpr (std::is_same_v<Sum, float>) {
      *to = {stagnated, first_overflow, largest};
    } else {
      for (std::size_t i = 0; i < sizeof(Sum) / sizeof(float); ++i)
        to[i] = {stagnated[i], first_overflow[i], largest[i]};
    }
  }
};

template <typename Sum, typename Terms, typename Adds>
[[nodiscard]] HALFSCOPE_HD Sum sum_in_order(AccumulateOrder order, const Terms& term, TermRange rows,
                                            Adds& adds) {
  if (order == AccumulateOrder::pairwise) return sum_pairwise(term, rows, adds);
  if (order == AccumulateOrder::kahan) return sum_kahan(Sum{}, term, rows, adds);
  return sum_sequential(Sum{}, term, rows, adds);
}

/// The sum of a column's terms; `counters` is null where nothing is counted.
template <typename Sum, typename Terms, typename Adds>
[[nodiscard]] HALFSCOPE_HD Sum column_sum(AccumulateOrder order, const Terms& term, TermRange rows, Adds adds,
                                          ColumnCounters* counters) {
  if (counters == nullptr) return sum_in_order<Sum>(order, term, rows, adds);
  CountedAdds<Sum, Adds> counted{adds};
  const Sum sum = sum_in_order<Sum>(order, term, rows, counted);
  counted.write(counters);
  return sum;
}

/// Joins the counters of a column's chunks, each of `chunk` rows, with those of the sum across them, which
/// `column_counters` holds before and in which the result goes.
struct MergeCounters {
  const ColumnCounters* chunk_counters;  // (chunks, columns)
  std::int64_t chunks, columns, chunk, rows;
  ColumnCounters* column_counters;  // (columns)
  HALFSCOPE_HD void operator()(std::int64_t c) const {
    ColumnCounters all;
    for (std::int64_t i = 0; i < chunks; ++i) all.merge(chunk_counters[i * columns + c], i * chunk);
    all.merge(column_counters[c], rows);
    column_counters[c] = all;
  }
};

}  // namespace halfscope
