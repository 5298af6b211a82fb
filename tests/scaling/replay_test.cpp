// Replays of traces whose outcome is known.
#include <halfscope/scaling/replay.hpp>
#include <halfscope/scaling/scalers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope {
namespace {

ScalerReplay replay(LossScaler& scaler, const std::vector<TraceStep>& trace) {
  ScalerReplay replay(scaler);
  for (const TraceStep& step : trace) replay.step(step);
  return replay;
}

using Steps = std::vector<std::int64_t>;
using Scales = std::vector<double>;

TEST_CASE("a replay predicts overflow from the largest gradient, whatever scale it was recorded at",
          "[scaling][replay]") {
  // max|g| is 1, but 8 in the third step; recorded at several scales.
  const std::vector<TraceStep> trace{{.step = 10, .scale = 1, .max_abs = 1},
                                     {.step = 20, .scale = 1024, .max_abs = 1024},
                                     {.step = 30, .scale = 2, .max_abs = 16},
                                     {.step = 40, .scale = 1, .max_abs = 1},
                                     {.step = 50, .scale = 1, .max_abs = 1}};
  const auto scaler = make_scaler("dynamic", {{"initial_scale", 65536}, {"growth_interval", 2}});
  const ScalerReplay result = replay(*scaler, trace);
  CHECK(result.scales() == Scales{65536, 32768, 32768, 16384, 16384});
  CHECK(result.overflows() == Steps{10, 30});
  CHECK(result.first_at_final_scale() == 40);
  CHECK_FALSE(result.flushed());
  const auto constant = make_scaler("static", {{"initial_scale", 65536}});
  const ScalerReplay unscathed = replay(*constant, trace);
  CHECK(unscathed.overflows().size() == 5);
  CHECK_FALSE(unscathed.skips());
}

TEST_CASE("a recorded overflow is one at its scale and above", "[scaling][replay]") {
  const std::vector<TraceStep> trace(3, {.step = 1, .scale = 1024, .finite = false});
  const auto above = make_scaler("dynamic", {{"initial_scale", 4096}});
  CHECK(replay(*above, trace).scales() == Scales{4096, 2048, 1024});
  CHECK(above->scale() == 512);
  const auto below = make_scaler("dynamic", {{"initial_scale", 512}});
  CHECK(replay(*below, trace).overflows().empty());
  // At a scale of 1 it is none of the scale's doing.
  const std::vector<TraceStep> hopeless(3, {.step = 1, .scale = 1, .finite = false});
  const auto any = make_scaler("dynamic", {{"initial_scale", 0.25}});
  CHECK(replay(*any, hopeless).overflows().size() == 3);
}

TEST_CASE("a replay says why a scaler would have ended the run", "[scaling][replay]") {
  const std::vector<TraceStep> trace(20, {.step = 7, .scale = 1, .finite = false});
  const auto scaler = make_scaler("deepspeed", {{"initial_scale", 4}});
  const ScalerReplay result = replay(*scaler, trace);
  REQUIRE(result.stopped());
  check_says(*result.stopped(), {"step 7", "minimum of 1"});
  CHECK(result.scales().size() == 4);
}

TEST_CASE("a replay flushes what the histogram says", "[scaling][replay]") {
  // Recorded at scale 4: unscaled 2^-26, 2^-25, 1 and a zero.
  ExponentHistogram histogram;
  histogram.add(std::vector<float>{0x1p-24f, 0x1p-23f, 4.0f, 0.0f});
  const TraceStep step{.step = 1, .scale = 4, .max_abs = 4, .histogram = histogram};
  for (const auto& [scale, flushed] :
       {std::pair(0.5, 2.0 / 3), {1.0, 2.0 / 3}, {2.0, 1.0 / 3}, {3.0, 1.0 / 3}, {4.0, 0.0}}) {
    const auto scaler = make_scaler("static", {{"initial_scale", scale}});
    const ScalerReplay result = replay(*scaler, {step, step});
    REQUIRE(result.flushed());
    CHECK(*result.flushed() == Approx(flushed));
  }
  const auto popart = make_scaler("popart");
  check_says(message_of<InvalidArgument>([&] { (void)replay(*popart, {{.step = 3, .max_abs = 1}}); }),
             {"step 3", "record_gradients=histogram"});
}

TEST_CASE("a scale that is chosen inside the backward pass is not replayed", "[scaling][replay]") {
  const auto scaler = make_scaler("layerwise");
  check_says(message_of<InvalidArgument>([&] { const ScalerReplay refused(*scaler); }),
             {"layerwise", "backward pass", "a trace does not hold"});
}

TEST_CASE("all stands for every scaler that a trace can be replayed through", "[scaling][replay]") {
  const ScalersToReplay every = scalers_to_replay({"all"});
  CHECK(every.all);
  std::vector<std::string> expected;
  for (const std::string_view name : table_names(scaler_table)) {
    if (name != "layerwise") expected.emplace_back(name);
  }
  CHECK(every.names == expected);
  const std::vector<std::vector<std::string>> others{{}, {"dynamic"}, {"1024", "none"}, {"all", "dynamic"}};
  for (const std::vector<std::string>& names : others) {
    const ScalersToReplay some = scalers_to_replay(names);
    CHECK(some.names == names);
    CHECK_FALSE(some.all);
  }
}

}  // namespace
}  // namespace halfscope
