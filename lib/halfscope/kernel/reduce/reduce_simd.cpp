// Column sums, compiled once per instruction set: one lane per column, so any order of adds vectorises.
#include <halfscope/kernel/reduce/detail/reduce_simd.hpp>

#include <halfscope/kernel/cast/detail/round_lanes.hpp>
#include <halfscope/kernel/detail/vector.hpp>
#include <halfscope/kernel/reduce/detail/reduce_element.hpp>

namespace halfscope {
namespace {

/// One column, for the columns that fill no vector.
using OneFloat [[gnu::vector_size(sizeof(float))]] = float;

/// The elements of the columns from `first` on, as many as a vector has lanes.
template <typename V>
struct LanesOfColumns {
  const ColumnTerms& terms;
  std::int64_t first;

  [[nodiscard]] HALFSCOPE_HD static V load_lanes(const float* from) {
    V v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  [[nodiscard]] HALFSCOPE_HD V row_of(const ElementReader& matrix, std::int64_t row) const {
    return load_lanes(static_cast<const float*>(matrix.data) + row * terms.columns + first);
  }
  [[nodiscard]] HALFSCOPE_HD V x(std::int64_t row) const { return row_of(terms.x, row); }
  [[nodiscard]] HALFSCOPE_HD V y(std::int64_t row) const { return row_of(terms.y, row); }
  [[nodiscard]] HALFSCOPE_HD V center() const { return load_lanes(terms.center + first); }
};

/// Adds of vectors, each rounded by `to`.
template <typename Round>
struct LaneAdds {
  Round to;
  template <typename V>
  [[nodiscard]] HALFSCOPE_HD V rounded(V x) const {
    return to(x);
  }
  template <typename V>
  [[nodiscard]] HALFSCOPE_HD V add(V a, V b) const {
    return to(a + b);
  }
};

/// Where the results of all columns go, and how each is added up.
template <typename Round>
struct Job {
  const ColumnTerms& terms;
  AccumulateOrder order;
  LaneAdds<Round> adds;
  float* sums;
  ColumnCounters* column_counters;
};

template <typename V, typename Round>
void sum_lanes(const Job<Round>& job, const ColumnRange& range) {
  const std::int64_t first = range.first_column;
  const TermsOfColumn<LanesOfColumns<V>, LaneAdds<Round>> term{job.terms.term, {job.terms, first}, job.adds};
  ColumnCounters* const counters = job.column_counters == nullptr ? nullptr : job.column_counters + first;
  const V sum = column_sum<V>(job.order, term, {range.first_row, range.last_row}, job.adds, counters);
  std::memcpy(job.sums + first, &sum, sizeof sum);
}

template <typename Round>
void sum_range(const Job<Round>& job, ColumnRange range) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  for (; range.first_column + width <= range.last_column; range.first_column += width) {
    sum_lanes<FloatVec>(job, range);
  }
  for (; range.first_column < range.last_column; ++range.first_column) sum_lanes<OneFloat>(job, range);
}

}  // namespace

template <Isa isa>
void column_sums_isa(const ColumnTerms& terms, const AccumulateModel& model, const ColumnRange& range,
                     float* sums, ColumnCounters* column_counters) {
  const auto with = [&](auto round) {
    sum_range(Job<decltype(round)>{terms, model.order, {round}, sums, column_counters}, range);
  };
  if (model.format == FloatFormat{}) return with(Identity{});
  if (model.format == fp16) return with(RoundToFp16{});
  with_rounding_to(model.format, with);
}
template void column_sums_isa<target_isa>(const ColumnTerms&, const AccumulateModel&, const ColumnRange&,
                                          float*, ColumnCounters*);

}  // namespace halfscope
