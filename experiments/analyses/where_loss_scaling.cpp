// Positions a loss averages over from which FP16 without loss scaling does harm, measured and predicted.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/format/formats.hpp>
#include <halfscope/scaling/advisor.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/constant_scale.hpp"
#include "experiments/analyses/harm_predictors.hpp"
#include "experiments/analyses/onsets.hpp"
#include "experiments/results/run_records.hpp"

namespace halfscope {
namespace where_loss_scaling {
namespace {

/// Doublings and halvings of the gradients that the one run is asked about.
constexpr int most_doublings = 8, most_halvings = 16;
/// Share of a gradient's sum of magnitudes beyond whose loss harm is expected. The small elements of a
/// softmax's gradient have as large a sum as its one large element, and next to none of its energy.
constexpr double flushed_where_harm_begins = AdvisorOptions{}.tolerance;

/// A loss of a step in casts to FP16, with all gradients divided by 2^halvings.
using Loss = std::optional<double> (*)(const WatchedStep& step, int halvings);

/// The largest share of an activation gradient's norm.
std::optional<double> lost_norm(const WatchedStep& step, int halvings) {
  return worst_underflow(step, -halvings);
}

/// The largest share of an activation gradient's sum of magnitudes.
std::optional<double> lost_magnitude(const WatchedStep& step, int halvings) {
  return worst_flushed_magnitude(step, -halvings);
}

/// The largest over the steps.
std::optional<double> worst_loss(Loss loss, const std::vector<WatchedStep>& steps, int halvings) {
  std::optional<double> worst;
  for (const WatchedStep& step : steps)
    if (const std::optional<double> own = loss(step, halvings)) worst = std::max(worst.value_or(0), *own);
  return worst;
}

/// An FP32 arm's first seed.
std::vector<WatchedStep> first_run(const RunRecords& records, const std::string& arm) {
  const std::vector<std::int64_t> seeds = records.seeds(arm);
  return seeds.empty() ? std::vector<WatchedStep>() : kept_steps(records, arm, seeds.front());
}

/// By the FP32 run with the fewest positions: with 2^k times as many, gradients are 2^-k times as large.
std::vector<CurvePoint> predicted_losses(Loss loss, const RunRecords& records, const std::string& arm,
                                         double place) {
  std::vector<CurvePoint> curve;
  const std::vector<WatchedStep> steps = first_run(records, arm);
  for (int halvings = -most_doublings; halvings <= most_halvings; ++halvings)
    if (const std::optional<double> worst = worst_loss(loss, steps, halvings))
      curve.push_back({std::ldexp(place, halvings), *worst});
  return curve;
}

Cell share_cell(const std::optional<double>& share) {
  return share ? Cell{fmt::format("{:.2f} %", 100 * *share), *share} : Cell{"-", std::monostate{}};
}

Json json_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Section lost_section(const AnalysisInput& input, const std::vector<MapPoint>& points, Json& values) {
  Table table{{{"series", "lost in"},
               {"variant", "arm"},
               {"positions", "positions"},
               {"magnitude", "sum of magnitudes flushed"},
               {"energy", "energy lost"},
               {"missed", "FP32's decrease missed"}},
              {}};
  const RunRecords records(input.folder);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const MapPoint& point = points[i];
    const std::vector<WatchedStep> steps = first_run(records, input.judged.find(point.arm)->baseline);
    const std::optional<double> magnitude = worst_loss(lost_magnitude, steps, 0);
    std::optional<double> energy = worst_loss(lost_norm, steps, 0);
    if (energy) energy = *energy * *energy;
    values["points"][i]["lost_magnitude"] = json_or_null(magnitude);
    values["points"][i]["lost_energy"] = json_or_null(energy);
    table.rows.push_back({point.series,
                          point.variant,
                          {fmt::format("{:.0f}", point.place), point.place},
                          share_cell(magnitude),
                          share_cell(energy),
                          point.missed ? Cell{fmt::format("{:.1f} %", 100 * *point.missed), *point.missed}
                                       : Cell{"-", std::monostate{}}});
  }
  return {.heading = "Losses of FP16 without a scale in the activation gradient that loses most",
          .table = std::move(table),
          .note = "by the histograms of FP32's first and last observed step"};
}

/// Whether the advice to train without a scale is given where that does harm.
Section advice_section(const AnalysisInput& input, const std::vector<MapPoint>& points, Json& values) {
  Table table{{{"series", "advice on"},
               {"positions", "positions"},
               {"enough_from", "enough from"},
               {"unscaled", "scale 1 would do too"},
               {"harm", "harm of scale 1"}},
              {}};
  const RunRecords records(input.folder);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const ArmSummary& arm = *input.judged.find(points[i].arm);
    if (constant_scale_log2(arm.loss_scale) != 0) continue;
    const Advice advice = advice_on(records, arm.baseline);
    if (!advice.joint) continue;
    const std::optional<Harm> harm = judged(points[i]);
    values["points"][i]["enough_from_log2"] = advice.joint->low;
    values["points"][i]["fits_unscaled"] = advice.fits_unscaled;
    table.rows.push_back({points[i].series,
                          {fmt::format("{:.0f}", points[i].place), points[i].place},
                          fmt::format("2^{}", advice.joint->low),
                          advice.fits_unscaled ? "said" : "not said",
                          harm ? std::string(name_of(*harm)) : "not judged"});
  }
  return {.heading = "Advice from the FP32 runs, beside the harm of training without a scale",
          .table = std::move(table),
          .note = "by the histograms of the first and last observed step of all seeds"};
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

/// Where the largest share of a norm would put the beginnings.
Section norm_section(const std::vector<Onset>& by_norm) {
  Table table{
      {{"series", "by the norm"}, {"variant", "arm"}, {"predicted", "predicted"}, {"factor", "factor"}}, {}};
  const auto cell = [](const std::optional<double>& value) {
    return value ? Cell{fmt::format("{:.3g}", *value), *value} : Cell{"-", std::monostate{}};
  };
  for (const Onset& onset : by_norm)
    table.rows.push_back({onset.series, onset.variant, cell(onset.predicted), cell(onset.factor())});
  return {.heading = "Beginnings where an activation gradient loses 20 % of its norm",
          .table = std::move(table)};
}

}  // namespace
}  // namespace where_loss_scaling

AnalysisResult find_where_loss_scaling(const AnalysisInput& input) {
  using namespace where_loss_scaling;
  const std::vector<MapPoint> points = map_points(input);
  if (points.empty()) return {};
  const RunRecords records(input.folder);
  std::vector<Onset> onsets = onsets_of(points, Grows::up);
  std::vector<Onset> by_norm = onsets;
  for (std::size_t i = 0; i < onsets.size(); ++i) {
    const MapPoint* first = fewest(points, onsets[i]);
    const std::string& baseline = input.judged.find(first->arm)->baseline;
    const double unscaled = std::ldexp(first->place, scaled_by(input, points, onsets[i]));
    onsets[i].predicted =
        crossing(predicted_losses(lost_magnitude, records, baseline, unscaled), flushed_where_harm_begins);
    by_norm[i].predicted =
        crossing(predicted_losses(lost_norm, records, baseline, unscaled), AdvisorOptions{}.tolerance);
  }
  AnalysisResult finding{.key = "where_loss_scaling", .values = to_json(points, onsets)};
  finding.values["flushed_where_harm_begins"] = flushed_where_harm_begins;
  finding.values["by_norm"] = to_json({}, by_norm)["onsets"];
  finding.sections.push_back(points_section(points, "positions"));
  finding.sections.push_back(lost_section(input, points, finding.values));
  finding.sections.push_back(onsets_section(onsets, "positions"));
  finding.sections.push_back(norm_section(by_norm));
  finding.sections.push_back(advice_section(input, points, finding.values));
  finding.sentence = predictions_in_words(onsets);
  return finding;
}

}  // namespace halfscope
