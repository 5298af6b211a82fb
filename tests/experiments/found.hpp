// Findings without a folder of results, for the tests of analyses.
#pragma once

#include <filesystem>

#include "experiments/analyses/analyses.hpp"

namespace halfscope {

/// Result of `find` for `summary` of `experiment`, whose results lie in `folder`.
inline AnalysisResult found(AnalysisResult (*find)(const AnalysisInput& input),
                            const Experiment& experiment = {}, const ExperimentSummary& summary = {},
                            const std::filesystem::path& folder = {}) {
  return find({experiment, summary, summary, folder});
}

}  // namespace halfscope
