// Learning rates below which weights of few bits learn less than FP32, measured and predicted by one FP32
// run.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/onsets.hpp"
#include "experiments/results/run_records.hpp"

namespace halfscope {
namespace where_master_copy {
namespace {

/// Share of the intended updates below which weights are expected to learn less.
constexpr double applied_where_harm_begins = 0.9;

/// Shares of the updates that one FP32 run's counts say of weights in a format, by learning rate, ascending.
struct AskedRun {
  std::string arm;
  std::int64_t seed = 0;
  std::vector<CurvePoint> lost{}, applied{};
};

/// A series and a format of weights.
using Asked = std::map<std::pair<std::string, std::string>, AskedRun>;

/// The first run of an FP32 arm that was asked what other weights would do.
void add_asked(const std::string& series, const std::string& arm, double rate, const FinishedRun& run,
               Asked& asked) {
  const auto rows = run.summary.find("what_if_updates");
  if (rows == run.summary.end()) return;
  for (const Json& row : *rows) {
    AskedRun& own = asked[{series, row.at("format").get<std::string>()}];
    if (!own.arm.empty() && own.arm != arm) continue;
    own.arm = arm;
    own.seed = run.seed;
    const double place = std::ldexp(rate, row.at("rate_log2").get<int>());
    own.lost.push_back({place, row.at("lost").get<double>()});
    own.applied.push_back({place, row.at("applied").get<double>()});
  }
}

Asked asked_runs(const AnalysisInput& input, const std::vector<MapPoint>& points) {
  const RunRecords records(input.folder);
  std::map<std::string, const MapPoint*> baselines;
  for (const MapPoint& point : points) {
    if (const ArmSummary* arm = input.judged.find(point.arm)) baselines.emplace(arm->baseline, &point);
  }
  Asked asked;
  for (const auto& [arm, point] : baselines) {
    const std::vector<FinishedRun> runs = records.of_arm(arm).finished;
    if (!runs.empty()) add_asked(point->series, arm, point->place, runs.front(), asked);
  }
  return asked;
}

/// On the logarithm of the rate, between two places; at the ends the nearest value.
double value_at(const std::vector<CurvePoint>& curve, double place) {
  if (place <= curve.front().place) return curve.front().value;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const auto [from, before] = curve[i - 1];
    const auto [to, after] = curve[i];
    if (place <= to) return before + (after - before) * std::log(place / from) / std::log(to / from);
  }
  return curve.back().value;
}

const AskedRun* find(const Asked& asked, const std::string& series, const std::string& format) {
  const auto found = asked.find({series, format});
  return found == asked.end() ? nullptr : &found->second;
}

Cell share_cell(const std::optional<double>& share) {
  return share ? Cell{fmt::format("{:.3f}", *share), *share} : Cell{"-", std::monostate{}};
}

/// Applied share of each point, counted while it trained and predicted from the one run.
Section applied_section(const AnalysisInput& input, const std::vector<MapPoint>& points, const Asked& asked,
                        Json& values) {
  Table table{{{"series", "series"},
               {"variant", "arm"},
               {"rate", "learning rate"},
               {"applied", "applied / intended"},
               {"predicted", "predicted"},
               {"missed", "FP32's decrease missed"}},
              {}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const MapPoint& point = points[i];
    const std::optional<double> counted = input.judged.find(point.arm)->column("update_projection");
    const AskedRun* run = find(asked, point.series, point.variant);
    const std::optional<double> predicted =
        run == nullptr ? std::nullopt : std::optional(value_at(run->applied, point.place));
    values["points"][i]["applied"] = counted ? Json(*counted) : Json();
    values["points"][i]["predicted_applied"] = predicted ? Json(*predicted) : Json();
    table.rows.push_back({point.series,
                          point.variant,
                          {fmt::format("{:g}", point.place), point.place},
                          share_cell(counted),
                          share_cell(predicted),
                          share_cell(point.missed)});
  }
  return {.heading = "Share of the intended updates that the stored weights take, and what that costs",
          .table = std::move(table),
          .note = "predicted: by the updates of one FP32 run, multiplied, on weights of the format"};
}

/// Where the law that counts updates puts the beginning: half of them are below half a spacing.
Json by_count(const std::vector<Onset>& onsets, const Asked& asked) {
  Json rows = Json::array();
  for (const Onset& onset : onsets) {
    const AskedRun* run = find(asked, onset.series, onset.variant);
    if (run == nullptr) continue;
    const std::optional<double> rate = crossing(run->lost, 0.5);
    rows.push_back({{"series", onset.series},
                    {"variant", onset.variant},
                    {"arm", run->arm},
                    {"seed", run->seed},
                    {"half_lost", rate ? Json(*rate) : Json()}});
  }
  return rows;
}

}  // namespace
}  // namespace where_master_copy

AnalysisResult find_where_master_copy(const AnalysisInput& input) {
  using namespace where_master_copy;
  const std::vector<MapPoint> points = map_points(input);
  if (points.empty()) return {};
  const Asked asked = asked_runs(input, points);
  std::vector<Onset> onsets = onsets_of(points, Grows::down);
  for (Onset& onset : onsets) {
    if (const AskedRun* run = find(asked, onset.series, onset.variant))
      onset.predicted = crossing(run->applied, applied_where_harm_begins);
  }
  AnalysisResult finding{.key = "where_master_copy", .values = to_json(points, onsets)};
  finding.values["by_count"] = by_count(onsets, asked);
  finding.values["applied_where_harm_begins"] = applied_where_harm_begins;
  finding.sections.push_back(points_section(points, "learning rate"));
  finding.sections.push_back(applied_section(input, points, asked, finding.values));
  finding.sections.push_back(onsets_section(onsets, "learning rate"));
  finding.sentence = predictions_in_words(onsets);
  return finding;
}

}  // namespace halfscope
