// Further seeds for claims that the finished ones leave undecided.
#pragma once

#include <vector>

#include "experiments/run/plan.hpp"

namespace halfscope {

/// Twice as many seeds, at most the request's `most_seeds`, of the arms and baselines whose expectations are
/// undecided by the runs that are done; nothing for an experiment whose claim is decided, not judged, or has
/// all its seeds. Prints a note for each experiment that goes on.
[[nodiscard]] std::vector<RequestedExperiment> with_more_seeds(
    const std::vector<RequestedExperiment>& requested);

}  // namespace halfscope
