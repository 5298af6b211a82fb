// The loop of column sums, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/detail/dispatch.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

namespace halfscope {

/// A rectangle of terms, and where the results of its columns go.
struct ColumnRange {
  std::int64_t first_row, last_row, first_column, last_column;
};

/// The sequential, pairwise or compensated sums of `range` in one thread; `column_counters` may be null.
template <Isa isa>
void column_sums_isa(const ColumnTerms& terms, const AccumulateModel& model, const ColumnRange& range,
                     float* sums, ColumnCounters* column_counters);

}  // namespace halfscope
