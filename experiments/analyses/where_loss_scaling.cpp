// Positions a loss averages over from which FP16 without loss scaling does harm, measured and predicted.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <halfscope/io/json/histogram_json.hpp>
#include <halfscope/scaling/advisor.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/constant_scale.hpp"
#include "experiments/analyses/harm_predictors.hpp"
#include "experiments/analyses/onsets.hpp"
#include "experiments/results/run_records.hpp"

namespace halfscope {
namespace where_loss_scaling {
namespace {

/// Halvings of the gradients that the one run is asked about.
constexpr int most_halvings = 16;

/// Observed steps of an FP32 run that its record keeps.
std::vector<WatchedStep> kept_steps(const RunRecords& records, const std::string& arm, std::int64_t seed) {
  std::map<std::int64_t, WatchedStep> steps;
  records.each_histogram(arm, seed, [&](const Json& record) {
    if (record.at("role").get<std::string>() == name_of(Role::activation_gradient))
      steps[record.at("step").get<std::int64_t>()].gradients.push_back(
          {Role::activation_gradient, histogram_of(record)});
    return Reading::continues;
  });
  std::vector<WatchedStep> all;
  for (auto& [number, step] : steps) all.push_back(std::move(step));
  return all;
}

/// The largest share of an activation gradient's norm that casts to FP16 lose, over the steps, with all
/// gradients divided by 2^halvings.
std::optional<double> worst_loss(const std::vector<WatchedStep>& steps, int halvings) {
  std::optional<double> worst;
  for (const WatchedStep& step : steps)
    if (const std::optional<double> own = worst_underflow(step, -halvings))
      worst = std::max(worst.value_or(0), *own);
  return worst;
}

/// An FP32 arm's first seed.
std::vector<WatchedStep> first_run(const RunRecords& records, const std::string& arm) {
  const std::vector<std::int64_t> seeds = records.seeds(arm);
  return seeds.empty() ? std::vector<WatchedStep>() : kept_steps(records, arm, seeds.front());
}

/// By the FP32 run with the fewest positions: with 2^k times as many, gradients are 2^-k times as large.
std::vector<CurvePoint> predicted_losses(const RunRecords& records, const std::string& arm, double place) {
  std::vector<CurvePoint> curve;
  const std::vector<WatchedStep> steps = first_run(records, arm);
  for (int halvings = 0; halvings <= most_halvings; ++halvings)
    if (const std::optional<double> worst = worst_loss(steps, halvings))
      curve.push_back({std::ldexp(place, halvings), *worst});
  return curve;
}

Cell energy_cell(const std::optional<double>& norm) {
  return norm ? Cell{fmt::format("{:.2f} %", 100 * *norm * *norm), *norm * *norm}
              : Cell{"-", std::monostate{}};
}

Section energy_section(const AnalysisInput& input, const std::vector<MapPoint>& points, Json& values) {
  Table table{{{"series", "series"},
               {"variant", "arm"},
               {"positions", "positions"},
               {"energy", "energy that FP16 would lose"},
               {"missed", "FP32's decrease missed"}},
              {}};
  const RunRecords records(input.folder);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const MapPoint& point = points[i];
    const std::optional<double> norm =
        worst_loss(first_run(records, input.judged.find(point.arm)->baseline), 0);
    values["points"][i]["lost_energy"] = norm ? Json(*norm * *norm) : Json();
    table.rows.push_back({point.series,
                          point.variant,
                          {fmt::format("{:.0f}", point.place), point.place},
                          energy_cell(norm),
                          point.missed ? Cell{fmt::format("{:.1f} %", 100 * *point.missed), *point.missed}
                                       : Cell{"-", std::monostate{}}});
  }
  return {.heading =
              "Share of the energy of the activation gradient that loses most, in FP32's first and last "
              "observed step",
          .table = std::move(table)};
}

/// Binades by which the arms of a beginning scale their loss up.
int scaled_by(const AnalysisInput& input, const std::vector<MapPoint>& points, const Onset& onset) {
  for (const MapPoint& point : points)
    if (point.series == onset.series && point.variant == onset.variant)
      return constant_scale_log2(input.judged.find(point.arm)->loss_scale).value_or(0);
  return 0;
}

/// The FP32 arm of the series with the fewest positions.
const MapPoint* fewest(const std::vector<MapPoint>& points, const Onset& onset) {
  const MapPoint* first = nullptr;
  for (const MapPoint& point : points)
    if (point.series == onset.series && (first == nullptr || point.place < first->place)) first = &point;
  return first;
}

}  // namespace
}  // namespace where_loss_scaling

AnalysisResult find_where_loss_scaling(const AnalysisInput& input) {
  using namespace where_loss_scaling;
  const std::vector<MapPoint> points = map_points(input);
  if (points.empty()) return {};
  const RunRecords records(input.folder);
  std::vector<Onset> onsets = onsets_of(points, Grows::up);
  for (Onset& onset : onsets) {
    const MapPoint* first = fewest(points, onset);
    const std::string& baseline = input.judged.find(first->arm)->baseline;
    const double unscaled = std::ldexp(first->place, scaled_by(input, points, onset));
    onset.predicted = crossing(predicted_losses(records, baseline, unscaled), AdvisorOptions{}.tolerance);
  }
  AnalysisResult finding{.key = "where_loss_scaling", .values = to_json(points, onsets)};
  finding.sections.push_back(points_section(points, "positions"));
  finding.sections.push_back(energy_section(input, points, finding.values));
  finding.sections.push_back(onsets_section(onsets, "positions"));
  finding.sentence = predictions_in_words(onsets);
  return finding;
}

}  // namespace halfscope
