// The advice on first and last histograms, beside arms at constant scales, from runs made by hand.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include <halfscope/io/json/histogram_json.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/results/summarise.hpp"
#include "tests/experiments/synthetic_runs.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::advice_at_ends_test {
namespace {

void add_arm(const TemporaryFolder& folder, const std::string& name, const std::string& scale,
             const Json& summary, Experiment& experiment) {
  experiment.arms.push_back({.name = name, .summary = "an arm", .settings = {{"loss_scale", scale}}});
  if (name != "fp32") experiment.arms.back().baseline = "fp32";
  put_run(folder, name, 0, summary);
  folder.put(name + "/seed0/config.json", Json{{"format_version", 1}, {"loss_scale", scale}}.dump());
}

TEST_CASE("an arm's scale is placed in the window of its baseline's histograms", "[advice_at_ends]") {
  const TemporaryFolder folder;
  Experiment experiment{};
  add_arm(folder, "fp32", "none", {{"metric", 2.0}}, experiment);
  add_arm(folder, "s1", "1", {{"metric", 3.0}}, experiment);
  add_arm(folder, "s16", "16", {{"metric", 2.5}}, experiment);
  add_arm(folder, "s1048576", "1048576", {{"diverged", true}, {"diverged_step", 1}}, experiment);
  add_arm(folder, "dynamic", "dynamic", {{"metric", 2.0}}, experiment);
  std::string lines;
  for (const int step : {1, 9}) {
    ExponentHistogram histogram;
    histogram.add(std::vector<float>(8, std::ldexp(1.0f, step == 1 ? 0 : -26)));
    lines += fmt::format(R"({{"step":{},"tensor":"t","role":"activation_gradient","scale":1.0,{}}})", step,
                         histogram_members(histogram)) +
             "\n";
  }
  folder.put("fp32/seed0/histograms.jsonl", lines);
  const ExperimentSummary summary = summarise(experiment, folder.path());
  const AnalysisResult found = find_advice_at_ends({experiment, summary, summary, folder.path()});
  REQUIRE(found.values.size() == 3);
  CHECK(found.values[0] == Json{{"arm", "s1"},
                                {"scale_log2", 0},
                                {"enough_from_log2", 2},
                                {"use_log2", 12},
                                {"overflow_beyond_log2", 15}});
  REQUIRE(found.sections.size() == 1);
  const auto& rows = found.sections[0].table.rows;
  CHECK(rows[0][5].text == "below");
  CHECK(rows[0][6].text == "1.500 of FP32's");
  CHECK(rows[1][5].text == "within");
  CHECK(rows[2][5].text == "above");
  CHECK(rows[2][6].text == "diverged 1 of 1");
}

TEST_CASE("without histograms there is no advice to set beside arms", "[advice_at_ends]") {
  const TemporaryFolder folder;
  Experiment experiment{};
  add_arm(folder, "fp32", "none", {{"metric", 2.0}}, experiment);
  add_arm(folder, "s1", "1", {{"metric", 3.0}}, experiment);
  const ExperimentSummary summary = summarise(experiment, folder.path());
  CHECK(find_advice_at_ends({experiment, summary, summary, folder.path()}).sections.empty());
}

}  // namespace
}  // namespace halfscope::advice_at_ends_test
