// Column sums, compiled once per instruction set: one lane per column, so any order of adds vectorises.
#include <halfscope/kernel/reduce/detail/reduce_simd.hpp>

#include <halfscope/kernel/cast/detail/round_lanes.hpp>
#include <halfscope/kernel/detail/vector.hpp>

namespace halfscope {
namespace {

/// One column, for the columns that fill no vector.
using OneFloat [[gnu::vector_size(sizeof(float))]] = float;

template <typename V>
HALFSCOPE_HD V load_lanes(const float* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <typename V>
struct NoCounters {
  HALFSCOPE_HD void see(V /*sum*/, V /*term*/, V /*next*/) {}
  void write(ColumnCounters* /*column_counters*/) const {}
};

/// Lane by lane counters; a lane's mask is -1 where a comparison holds.
template <typename V>
struct CountSums {
  using Mask = decltype(V{} == V{});
  Mask stagnated{};
  Mask first_overflow = Mask{} - 1;
  V largest{};
  int adds = 0;

  HALFSCOPE_HD static Mask is_finite(V v) { return (v - v) == V{}; }
  HALFSCOPE_HD void see(V sum, V term, V next) {
    const Mask finite = is_finite(next);
    const V magnitude = next < V{} ? -next : next;
    stagnated -= (next == sum) & (term != V{});
    largest = (finite & (magnitude > largest)) ? magnitude : largest;
    const Mask overflows = ~finite & is_finite(sum) & is_finite(term) & (first_overflow < 0);
    first_overflow = overflows ? Mask{} + adds : first_overflow;
    ++adds;
  }
  void write(ColumnCounters* column_counters) const {
    for (std::size_t i = 0; i < sizeof(V) / sizeof(float); ++i) {
      column_counters[i] = {stagnated[i], first_overflow[i], largest[i]};
    }
  }
};

/// The term of row r and of the columns that start at c.
template <typename V, typename Round>
HALFSCOPE_HD V term_at(const ColumnTerms& terms, std::int64_t r, std::int64_t c, Round to) {
  const float* x = static_cast<const float*>(terms.x.data) + r * terms.columns + c;
  switch (terms.term) {
    case Term::squared_deviation: {
      const V deviation = to(load_lanes<V>(x) - load_lanes<V>(terms.center + c));
      return to(deviation * deviation);
    }
    case Term::product: {
      const float* y = static_cast<const float*>(terms.y.data) + r * terms.columns + c;
      return to(load_lanes<V>(x) * load_lanes<V>(y));
    }
    case Term::value:
      break;
  }
  return to(load_lanes<V>(x));
}

template <typename V, typename Round, typename Observer>
V sum_sequential(const ColumnTerms& terms, const ColumnRange& range, Round to, Observer& observer) {
  V sum{};
  for (std::int64_t r = range.first_row; r < range.last_row; ++r) {
    const V term = term_at<V>(terms, r, range.first_column, to);
    const V next = to(sum + term);
    observer.see(sum, term, next);
    sum = next;
  }
  return sum;
}

template <typename V, typename Round, typename Observer>
V sum_kahan(const ColumnTerms& terms, const ColumnRange& range, Round to, Observer& observer) {
  V sum{}, compensation{};
  for (std::int64_t r = range.first_row; r < range.last_row; ++r) {
    const V addend = to(term_at<V>(terms, r, range.first_column, to) - compensation);
    const V next = to(sum + addend);
    observer.see(sum, addend, next);
    compensation = to(to(next - sum) - addend);
    sum = next;
  }
  return sum;
}

/// A binary counter of subtrees: two of equal size are added as soon as both are complete.
template <typename V, typename Round, typename Observer>
V sum_pairwise(const ColumnTerms& terms, const ColumnRange& range, Round to, Observer& observer) {
  const auto add = [&](V left, V right) {
    const V next = to(left + right);
    observer.see(left, right, next);
    return next;
  };
  V subtree[63];
  const std::int64_t count = range.last_row - range.first_row;
  for (std::int64_t i = 0; i < count; ++i) {
    V sum = term_at<V>(terms, range.first_row + i, range.first_column, to);
    int level = 0;
    for (; ((i >> level) & 1) != 0; ++level) sum = add(subtree[level], sum);
    subtree[level] = sum;
  }
  V sum{};
  bool joined = false;
  for (int level = 0; (count >> level) != 0; ++level) {
    if (((count >> level) & 1) == 0) continue;
    sum = joined ? add(subtree[level], sum) : subtree[level];
    joined = true;
  }
  return sum;
}

/// Where the results of all columns go, and how each is added up.
template <typename Round>
struct Job {
  const ColumnTerms& terms;
  AccumulateOrder order;
  Round round;
  float* sums;
  ColumnCounters* column_counters;
};

template <typename V, typename Round, typename Observer>
V sum_in_order(const Job<Round>& job, const ColumnRange& range, Observer& observer) {
  if (job.order == AccumulateOrder::pairwise) return sum_pairwise<V>(job.terms, range, job.round, observer);
  if (job.order == AccumulateOrder::kahan) return sum_kahan<V>(job.terms, range, job.round, observer);
  return sum_sequential<V>(job.terms, range, job.round, observer);
}

template <typename V, typename Observer, typename Round>
void sum_lanes(const Job<Round>& job, const ColumnRange& range) {
  Observer observer;
  const V sum = sum_in_order<V>(job, range, observer);
  std::memcpy(job.sums + range.first_column, &sum, sizeof sum);
  observer.write(job.column_counters + range.first_column);
}

template <template <typename> typename Observer, typename Round>
void sum_range(const Job<Round>& job, ColumnRange range) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  for (; range.first_column + width <= range.last_column; range.first_column += width) {
    sum_lanes<FloatVec, Observer<FloatVec>>(job, range);
  }
  for (; range.first_column < range.last_column; ++range.first_column) {
    sum_lanes<OneFloat, Observer<OneFloat>>(job, range);
  }
}

template <typename Round>
void run(const Job<Round>& job, const ColumnRange& range) {
  if (job.column_counters == nullptr) return sum_range<NoCounters>(job, range);
  sum_range<CountSums>(job, range);
}

}  // namespace

template <Isa isa>
void column_sums_isa(const ColumnTerms& terms, const AccumulateModel& model, const ColumnRange& range,
                     float* sums, ColumnCounters* column_counters) {
  if (model.format == FloatFormat{})
    return run(Job<Identity>{terms, model.order, {}, sums, column_counters}, range);
  if (model.format == FloatFormat{5, 10})
    return run(Job<RoundToFp16>{terms, model.order, {}, sums, column_counters}, range);
  run(Job<RoundTo>{terms, model.order, {rounding_grid({.format = model.format})}, sums, column_counters},
      range);
}
template void column_sums_isa<target_isa>(const ColumnTerms&, const AccumulateModel&, const ColumnRange&,
                                          float*, ColumnCounters*);

}  // namespace halfscope
