// Beginnings of harm, from runs made by hand.
#include "experiments/analyses/onsets.hpp"

#include <nlohmann/json.hpp>

#include "experiments/results/summarise.hpp"
#include "tests/experiments/synthetic_runs.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::onsets_test {
namespace {

/// Losses of three seeds that miss about `missed` of a decrease from 4 to 2.
void put_arm(const TemporaryFolder& folder, const std::string& name, double missed, Experiment& experiment) {
  const std::string place = name.substr(name.rfind('_') + 1);
  experiment.arms.push_back({.name = name, .summary = "an arm", .settings = {}});
  if (name.find("_fp32_") == std::string::npos) experiment.arms.back().baseline = "net_fp32_" + place;
  for (int seed = 0; seed < 3; ++seed) {
    const double end = 2 + 0.1 * seed;
    const double own = end + (4 - end) * missed * (1 + 0.01 * seed);
    put_run(folder, name, seed, {{"initial_loss", 4.0}, {"test_loss", own}});
  }
}

struct Map {
  TemporaryFolder folder;
  Experiment experiment{};
  std::vector<MapPoint> points;

  explicit Map(const std::vector<std::pair<std::string, double>>& arms) {
    for (const auto& [name, missed] : arms) put_arm(folder, name, missed, experiment);
    const ExperimentSummary summary = summarise(experiment, folder.path());
    points = map_points({experiment, summary, summary, folder.path()});
  }
};

TEST_CASE("arms of a map are compared seed by seed with FP32's at their place", "[onsets]") {
  const Map map(
      {{"net_fp32_0.01", 0}, {"net_fp16_0.01", 0.001}, {"net_fp32_1e-05", 0}, {"net_fp16_1e-05", 0.5}});
  REQUIRE(map.points.size() == 2);
  CHECK(map.points[0].series == "net");
  CHECK(map.points[0].variant == "fp16");
  CHECK(map.points[1].place == 1e-5);
  CHECK(*map.points[1].missed == Approx(0.505));
  CHECK(*map.points[1].low > 0.48);
  CHECK(judged(map.points[0]) == Harm::none);
  CHECK(judged(map.points[1]) == Harm::done);
}

TEST_CASE("harm begins between the last harmless place and the first harmful one", "[onsets]") {
  Map map({{"net_fp32_1", 0},
           {"net_fp16_1", 0},
           {"net_fp32_4", 0},
           {"net_fp16_4", 0.01},
           {"net_fp32_16", 0},
           {"net_fp16_16", 0.3},
           {"net_fp32_64", 0},
           {"net_fp16_64", 0.8}});
  std::vector<Onset> up = onsets_of(map.points, Grows::up);
  REQUIRE(up.size() == 1);
  CHECK(up[0].harmless == 4);
  CHECK(up[0].harmful == 16);
  CHECK(*up[0].measured() == Approx(8));
  CHECK_FALSE(up[0].factor());
  up[0].predicted = 2;
  CHECK(*up[0].factor() == Approx(4));
  CHECK(predictions_in_words(up) == "1 of 1 measured beginnings of harm are predicted within a factor of 4");
  up[0].predicted = 33;
  CHECK(predictions_in_words(up).starts_with("0 of 1"));
  CHECK_FALSE(onsets_of(map.points, Grows::down)[0].measured());
}

TEST_CASE("one seed is not judged, a diverged one is harm, a wide interval undecided", "[onsets]") {
  MapPoint point{.missed = 0.2, .seeds = 1};
  CHECK_FALSE(judged(point));
  point.low = 0.04;
  point.high = 0.36;
  CHECK(judged(point) == Harm::undecided);
  point.high = 0.05;
  CHECK(judged(point) == Harm::none);
  point.diverged = 1;
  CHECK(judged(point) == Harm::done);
}

TEST_CASE("a curve crosses a level between two of its places, on their logarithms", "[onsets]") {
  CHECK(*crossing({{1, 0}, {4, 1}, {16, 3}}, 2) == Approx(8));
  CHECK(*crossing({{1, 1}, {100, 0}}, 0.5) == Approx(10));
  CHECK_FALSE(crossing({{1, 0}, {4, 1}}, 2));
  CHECK_FALSE(crossing({}, 2));
}

}  // namespace
}  // namespace halfscope::onsets_test
