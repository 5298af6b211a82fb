// Beginnings of harm on a map: arms along an axis, each beside the FP32 arm at the same place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/analyses/analysis.hpp"

namespace halfscope {

/// An arm called SERIES_VARIANT_PLACE whose baseline is SERIES_fp32_PLACE, compared seed by seed.
struct MapPoint {
  std::string arm{}, series{}, variant{};
  double place = 0;
  /// Mean over the seeds of the share of FP32's decrease of the loss that the arm misses, with its 95 %
  /// interval; the decrease is from the loss of the first step. Empty where FP32 hardly learns.
  std::optional<double> missed{}, low{}, high{};
  /// Loss above FP32's, likewise.
  std::optional<double> above{}, above_low{}, above_high{};
  int seeds = 0, diverged = 0;
};

enum class Harm : std::uint8_t { none, undecided, done };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<Harm>{"none", "undecided", "harm"};

/// A larger share than this that is missed is harm.
inline constexpr double missed_margin = 0.05;
/// FP32 hardly learns where its loss falls by less than this share.
inline constexpr double least_decrease = 0.02;

/// Harm where the interval lies above the margin, none where it lies below it or on it, else undecided; harm
/// where a seed diverged. Empty where FP32 hardly learns or there is one seed.
[[nodiscard]] std::optional<Harm> judged(const MapPoint& point);

/// The points of the arms that were run, in the experiment's order. Losses are `test_loss`.
[[nodiscard]] std::vector<MapPoint> map_points(const AnalysisInput& input);

/// Which way along the axis the harm grows.
enum class Grows : std::uint8_t { up, down };

/// The beginning of harm along one series: between the last place without harm and the first with it.
struct Onset {
  std::string series, variant;
  std::optional<double> harmless{}, harmful{};
  std::optional<double> predicted{};

  /// Geometric mean of both ends; empty without one of them.
  [[nodiscard]] std::optional<double> measured() const;
  /// How many times too large or too small the prediction is, at least 1; empty without both.
  [[nodiscard]] std::optional<double> factor() const;
};

/// An onset per series and variant, in the order of the points.
[[nodiscard]] std::vector<Onset> onsets_of(const std::vector<MapPoint>& points, Grows grows);

/// The place, between two of `curve` (ascending places, values), at which the value crosses `level`, on
/// logarithms of the places; empty where it does not cross.
struct CurvePoint {
  double place = 0, value = 0;
};
[[nodiscard]] std::optional<double> crossing(const std::vector<CurvePoint>& curve, double level);

/// Values for programs: {points: [...], onsets: [...]}.
[[nodiscard]] Json to_json(const std::vector<MapPoint>& points, const std::vector<Onset>& onsets);
/// A row per point and per onset. `place` heads the places.
[[nodiscard]] Section points_section(const std::vector<MapPoint>& points, std::string_view place);
[[nodiscard]] Section onsets_section(const std::vector<Onset>& onsets, std::string_view place);
/// "3 of 4 beginnings are predicted within a factor of 4".
[[nodiscard]] std::string predictions_in_words(const std::vector<Onset>& onsets);

}  // namespace halfscope
