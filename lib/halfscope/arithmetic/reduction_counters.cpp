// Merging what several reductions went through.
#include <halfscope/arithmetic/reduction_counters.hpp>

#include <algorithm>

namespace halfscope {

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
