// Counters of a reduction: its largest partial sum, its overflows, and the adds that changed nothing.
#pragma once

#include <cstdint>

namespace halfscope {

/// Of one or several reductions of the same length (the channels of a batch norm, say), merged.
struct ReductionCounters {
  std::int64_t reductions = 0;       ///< how many results
  std::int64_t terms = 0;            ///< terms of each
  std::int64_t overflowed = 0;       ///< results that became infinite or NaN from finite terms
  std::int64_t first_overflow = -1;  ///< smallest index of the add that overflowed, -1 if none did
  std::int64_t stagnated = 0;        ///< adds of a nonzero term that left the partial sum as it was
  float largest_partial_sum = 0;     ///< of |partial sum|, the finite ones

  void merge(const ReductionCounters& other);
  friend bool operator==(const ReductionCounters&, const ReductionCounters&) = default;
};

}  // namespace halfscope
