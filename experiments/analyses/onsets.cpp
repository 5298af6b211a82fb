// Pairs arms with FP32's, seed by seed, and looks for the first that is harmed.
#include "experiments/analyses/onsets.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

#include <halfscope/stats/confidence.hpp>

#include "experiments/results/run_records.hpp"

namespace halfscope {
namespace onsets {
namespace {

constexpr std::string_view fp32_mark = "_fp32_";
constexpr double allowed_factor = 4;

/// Names of an arm and of its baseline taken apart; empty where they are not those of a map.
std::optional<MapPoint> named_point(const std::string& arm, const std::string& baseline) {
  const std::size_t mark = baseline.find(fp32_mark);
  if (mark == std::string::npos) return std::nullopt;
  const std::string series = baseline.substr(0, mark), place = baseline.substr(mark + fp32_mark.size());
  if (!arm.starts_with(series + "_") || !arm.ends_with("_" + place)) return std::nullopt;
  const std::size_t from = series.size() + 1, to = arm.size() - place.size() - 1;
  if (from >= to) return std::nullopt;
  MapPoint point{.arm = arm, .series = series, .variant = arm.substr(from, to - from)};
  const auto [end, error] = std::from_chars(place.data(), place.data() + place.size(), point.place);
  if (error != std::errc() || end != place.data() + place.size()) return std::nullopt;
  return point;
}

/// A run's losses: before the first update, and on the test set at the end.
struct Losses {
  double initial = 0;
  std::optional<double> end{};  ///< empty of a run that diverged
};

std::map<std::int64_t, Losses> losses_by_seed(const std::vector<FinishedRun>& runs) {
  std::map<std::int64_t, Losses> losses;
  for (const FinishedRun& run : runs) {
    if (!run.summary.contains("initial_loss") || !run.summary["initial_loss"].is_number()) continue;
    Losses& own = losses[run.seed];
    own.initial = run.summary["initial_loss"].get<double>();
    if (run.summary["test_loss"].is_number()) own.end = run.summary["test_loss"].get<double>();
  }
  return losses;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void set_interval(const std::vector<double>& values, std::optional<double>& mean, std::optional<double>& low,
                  std::optional<double>& high) {
  if (values.empty()) return;
  mean = mean_of(values);
  if (values.size() < 2) return;
  const double half = confidence_95(values);
  low = *mean - half;
  high = *mean + half;
}

/// Compares the seeds that both have.
void compare(const std::vector<FinishedRun>& ours, const std::vector<FinishedRun>& theirs, MapPoint& point) {
  std::vector<double> missed, above;
  const std::map<std::int64_t, Losses> base = losses_by_seed(theirs);
  bool learns = true;
  for (const auto& [seed, own] : losses_by_seed(ours)) {
    const auto found = base.find(seed);
    if (found == base.end() || !found->second.end) continue;
    ++point.seeds;
    if (!own.end) {
      ++point.diverged;
      continue;
    }
    const double decrease = found->second.initial - *found->second.end;
    learns = learns && decrease >= least_decrease * found->second.initial;
    above.push_back(*own.end - *found->second.end);
    missed.push_back(above.back() / decrease);
  }
  set_interval(above, point.above, point.above_low, point.above_high);
  if (learns) set_interval(missed, point.missed, point.low, point.high);
}

Json json_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Cell percent_cell(const std::optional<double>& share) {
  return share ? Cell{fmt::format("{:.1f} %", 100 * *share), *share} : Cell{"-", std::monostate{}};
}

Cell place_cell(const std::optional<double>& place) {
  return place ? Cell{fmt::format("{:.3g}", *place), *place} : Cell{"-", std::monostate{}};
}

/// The last harmless place before the first harmful one, in the direction in which harm grows.
void find_beginning(std::vector<const MapPoint*> points, Grows grows, Onset& onset) {
  std::ranges::sort(points, [&](const MapPoint* a, const MapPoint* b) {
    return grows == Grows::up ? a->place < b->place : a->place > b->place;
  });
  for (const MapPoint* point : points) {
    const std::optional<Harm> harm = judged(*point);
    if (harm == Harm::done) {
      onset.harmful = point->place;
      return;
    }
    if (harm == Harm::none) onset.harmless = point->place;
  }
}

}  // namespace
}  // namespace onsets

std::optional<Harm> judged(const MapPoint& point) {
  if (point.diverged > 0) return Harm::done;
  if (!point.low) return std::nullopt;
  if (*point.low > missed_margin) return Harm::done;
  return *point.high <= missed_margin ? Harm::none : Harm::undecided;
}

std::vector<MapPoint> map_points(const AnalysisInput& input) {
  const RunRecords records(input.folder);
  std::vector<MapPoint> points;
  for (const ArmSummary& arm : input.judged.arms) {
    std::optional<MapPoint> point = onsets::named_point(arm.arm, arm.baseline);
    if (!point) continue;
    onsets::compare(records.of_arm(arm.arm).finished, records.of_arm(arm.baseline).finished, *point);
    if (point->seeds > 0) points.push_back(std::move(*point));
  }
  return points;
}

std::optional<double> Onset::measured() const {
  if (!harmless || !harmful) return std::nullopt;
  return std::sqrt(*harmless * *harmful);
}

std::optional<double> Onset::factor() const {
  const std::optional<double> here = measured();
  if (!here || !predicted) return std::nullopt;
  return std::max(*here / *predicted, *predicted / *here);
}

std::vector<Onset> onsets_of(const std::vector<MapPoint>& points, Grows grows) {
  std::vector<Onset> found;
  for (const MapPoint& point : points) {
    const auto same = [&](const auto& other) {
      return other.series == point.series && other.variant == point.variant;
    };
    if (std::ranges::any_of(found, same)) continue;
    std::vector<const MapPoint*> own;
    for (const MapPoint& other : points)
      if (same(other)) own.push_back(&other);
    Onset& onset = found.emplace_back(Onset{.series = point.series, .variant = point.variant});
    onsets::find_beginning(own, grows, onset);
  }
  return found;
}

std::optional<double> crossing(const std::vector<CurvePoint>& curve, double level) {
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const auto [from, before] = curve[i - 1];
    const auto [to, after] = curve[i];
    if ((before < level) == (after < level)) continue;
    const double share = (level - before) / (after - before);
    return from * std::pow(to / from, share);
  }
  return std::nullopt;
}

Json to_json(const std::vector<MapPoint>& points, const std::vector<Onset>& onsets) {
  using onsets::json_or_null;
  Json json{{"margin", missed_margin}, {"points", Json::array()}, {"onsets", Json::array()}};
  for (const MapPoint& p : points) {
    const std::optional<Harm> harm = judged(p);
    json["points"].push_back({{"arm", p.arm},
                              {"series", p.series},
                              {"variant", p.variant},
                              {"place", p.place},
                              {"seeds", p.seeds},
                              {"diverged", p.diverged},
                              {"missed", json_or_null(p.missed)},
                              {"low", json_or_null(p.low)},
                              {"high", json_or_null(p.high)},
                              {"above", json_or_null(p.above)},
                              {"above_low", json_or_null(p.above_low)},
                              {"above_high", json_or_null(p.above_high)},
                              {"harm", harm ? Json(std::string(name_of(*harm))) : Json()}});
  }
  for (const Onset& o : onsets) {
    json["onsets"].push_back({{"series", o.series},
                              {"variant", o.variant},
                              {"harmless", json_or_null(o.harmless)},
                              {"harmful", json_or_null(o.harmful)},
                              {"measured", json_or_null(o.measured())},
                              {"predicted", json_or_null(o.predicted)},
                              {"factor", json_or_null(o.factor())}});
  }
  return json;
}

Section points_section(const std::vector<MapPoint>& points, std::string_view place) {
  Table table{{{"series", "series"},
               {"variant", "arm"},
               {"place", std::string(place)},
               {"missed", "FP32's decrease missed"},
               {"interval", "95 % interval, paired"},
               {"above", "loss above FP32's"},
               {"harm", "harm"}},
              {}};
  for (const MapPoint& p : points) {
    const std::optional<Harm> harm = judged(p);
    const std::string interval =
        p.low ? fmt::format("{:.1f} .. {:.1f}", 100 * *p.low, 100 * *p.high) : std::string("-");
    table.rows.push_back(
        {p.series,
         p.variant,
         {fmt::format("{:g}", p.place), p.place},
         p.diverged > 0 ? Cell{fmt::format("diverged {} of {}", p.diverged, p.seeds)}
                        : onsets::percent_cell(p.missed),
         interval,
         p.above ? Cell{fmt::format("{:+.4f}", *p.above), *p.above} : Cell{"-", std::monostate{}},
         harm                   ? std::string(name_of(*harm))
         : p.above && !p.missed ? "FP32 hardly learns"
                                : "not judged"});
  }
  return {.heading = "Share of FP32's decrease of the loss that an arm misses, seed by seed",
          .table = std::move(table),
          .note = fmt::format("harm: the interval lies above {:.0f} %; none: it does not reach beyond it",
                              100 * missed_margin)};
}

Section onsets_section(const std::vector<Onset>& onsets, std::string_view place) {
  Table table{{{"series", "begins in"},
               {"variant", "arm"},
               {"harmless", fmt::format("last harmless {}", place)},
               {"harmful", "first harmful"},
               {"measured", "begins at"},
               {"predicted", "predicted"},
               {"factor", "factor"}},
              {}};
  for (const Onset& o : onsets) {
    table.rows.push_back({o.series, o.variant, onsets::place_cell(o.harmless), onsets::place_cell(o.harmful),
                          onsets::place_cell(o.measured()), onsets::place_cell(o.predicted),
                          onsets::place_cell(o.factor())});
  }
  return {.heading = "Beginnings of harm, measured and predicted", .table = std::move(table)};
}

std::string predictions_in_words(const std::vector<Onset>& onsets) {
  int known = 0, right = 0;
  for (const Onset& onset : onsets) {
    if (!onset.factor()) continue;
    ++known;
    right += *onset.factor() <= onsets::allowed_factor ? 1 : 0;
  }
  if (known == 0) return "No beginning of harm was both measured and predicted";
  return fmt::format("{} of {} measured beginnings of harm are predicted within a factor of {:g}", right,
                     known, onsets::allowed_factor);
}

}  // namespace halfscope
