// Runs the analyses of an experiment.
#include "experiments/analyses/analyses.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "experiments/results/summarise.hpp"
#include "experiments/results/verdict.hpp"

namespace halfscope {
namespace {

bool is_of(const AnalysisEntry& analysis, const Experiment& experiment) {
  return (analysis.applies != nullptr && analysis.applies(experiment)) ||
         std::ranges::find(experiment.analyses, analysis.name) != experiment.analyses.end();
}

bool says_nothing(const AnalysisResult& finding) {
  return finding.sections.empty() && finding.values.is_null() && finding.sentence.empty() &&
         finding.on_arms.empty();
}

}  // namespace

std::vector<std::string_view> analysis_names() {
  return table_names(analyses);
}

void add_findings(const Experiment& experiment, const std::filesystem::path& folder,
                  ExperimentSummary& summary) {
  const ExperimentSummary judged = judged_part(experiment, summary);
  std::vector<AnalysisResult> findings;
  for (const AnalysisEntry& analysis : analyses) {
    if (!is_of(analysis, experiment)) continue;
    AnalysisResult finding = analysis.find({experiment, summary, judged, folder});
    finding.analysis = analysis.name;
    if (!says_nothing(finding)) findings.push_back(std::move(finding));
  }
  summary.findings = std::move(findings);
}

ExperimentSummary analyse(const Experiment& experiment, const std::filesystem::path& folder) {
  ExperimentSummary summary = summarise(experiment, folder);
  add_findings(experiment, folder, summary);
  return summary;
}

}  // namespace halfscope
