// Shows how well predictors tell harm: as JSON, as tables, and in a sentence.
#pragma once

#include <string>

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// {harmful, tolerance, advisor, predictors, advice, trainings}; an infinite value of a predictor is null.
[[nodiscard]] Json to_json(const HarmEvidence& evidence);

/// A line per predictor, and a line per task with the advisor's answer; empty without trainings.
[[nodiscard]] std::string harm_tables(const HarmEvidence& evidence);

/// The predictors that are right most often, with and without a probe.
[[nodiscard]] std::string harm_verdict(const ExperimentSummary& summary);

}  // namespace halfscope
