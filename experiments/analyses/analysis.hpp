// An analysis: a finding of an experiment beside the results of its arms.
#pragma once

#include <filesystem>
#include <string_view>

#include "experiments/results/summary.hpp"

namespace halfscope {

struct AnalysisInput {
  const Experiment& experiment;
  const ExperimentSummary& summary;     ///< without findings
  const ExperimentSummary& judged;      ///< with the arms alone that claim and verdict are about
  const std::filesystem::path& folder;  ///< DIR/<experiment>
};

struct AnalysisEntry {
  std::string_view name;
  std::string_view summary;
  /// A finding without sections, values and sentence is left out.
  AnalysisResult (*find)(const AnalysisInput& input);
  /// Null: of experiments that name it.
  bool (*applies)(const Experiment& experiment) = nullptr;
};

}  // namespace halfscope
