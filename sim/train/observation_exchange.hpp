// Observations of several processes as those of one.
#pragma once

#include <string>

#include <halfscope/stats/tracker.hpp>

namespace halfscope {

/// Adds what another process saw of a step, in the ranks behind those of `all`, as one process would have
/// seen both: counts of a tensor add up, reductions and traces follow each other.
void merge_observations(StepObservations& all, const StepObservations& part);

/// As bytes for a process of the same program.
[[nodiscard]] std::string to_bytes(const StepObservations& observations);
/// Throws RuntimeFailure where the bytes are not such.
[[nodiscard]] StepObservations observations_from(std::string_view bytes);

/// The observations of all processes go to the first; the others' are empty afterwards. All processes call
/// it.
void gather_observations(StepObservations& own);

/// Every process gets the counts of all.
void sum_histograms(ExponentHistogram& own);

}  // namespace halfscope
