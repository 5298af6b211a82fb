// Replays of traces whose outcome is known.
#include <halfscope/scaling/replay.hpp>
#include <halfscope/scaling/scalers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::replay_test {
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

TEST_CASE("a trace with gaps is replayed by its step numbers", "[scaling][replay]") {
  const auto step = [](std::int64_t number, bool finite) {
    return TraceStep{.step = number, .scale = 1, .finite = finite, .max_abs = 1};
  };
  TraceReplay replay({"dynamic"}, {{"initial_scale", 1024}, {"growth_interval", 2}});
  for (const TraceStep& recorded : {step(1, true), step(4, false), step(8, true)}) replay.step(recorded);
  const ScalerReplay& dynamic = replay.candidates()[0].replay;
  // Steps 2, 3 and 5 to 7 are like the latest finite one: the overflow of step 4 is not repeated.
  CHECK(dynamic.scales() == Scales{1024, 2048, 2048});
  CHECK(dynamic.overflows() == Steps{4});
  CHECK(replay.steps() == Steps{1, 4, 8});
  check_says(message_of<InvalidArgument>([&] { replay.step(step(2'000'000, true)); }),
             {"step 2000000 follows step 8", "1000000 apart"});
  replay.step(step(3, true));  // a run that was resumed goes back
  CHECK(replay.steps().size() == 4);
}

TEST_CASE("a replay flushes what the histogram says", "[scaling][replay]") {
  // Recorded at scale 4: unscaled 2^-26, 2^-25, 1 and a zero.
  ExponentHistogram histogram;
  histogram.add(std::vector<float>{0x1p-24f, 0x1p-23f, 4.0f, 0.0f});
  const TraceStep step{
      .step = 1, .scale = 4, .max_abs = 4, .histogram = std::make_shared<const ExponentHistogram>(histogram)};
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

std::vector<std::string> names_of(const TraceReplay& replay) {
  std::vector<std::string> names;
  for (const ReplayCandidate& candidate : replay.candidates()) names.push_back(candidate.name);
  return names;
}

TEST_CASE("all stands for every scaler that a trace can be replayed through", "[scaling][replay]") {
  std::vector<std::string> expected;
  for (const std::string_view name : table_names(scaler_table)) {
    if (name != "layerwise") expected.emplace_back(name);
  }
  CHECK(names_of(TraceReplay({"all"}, {})) == expected);
  for (const std::vector<std::string>& names :
       std::vector<std::vector<std::string>>{{}, {"dynamic"}, {"1024", "none"}}) {
    CHECK(names_of(TraceReplay(names, {})) == names);
  }
  std::vector<std::string> beside = expected;
  std::erase(beside, "dynamic");
  beside.insert(beside.begin(), "8");
  beside.emplace_back("dynamic");
  CHECK(names_of(TraceReplay({"8", "all", "dynamic"}, {})) == beside);
}

TEST_CASE("all leaves out scalers of histograms where the first step has none", "[scaling][replay]") {
  const TraceStep without{.step = 5, .scale = 1, .max_abs = 1};
  TraceStep counted = without;
  ExponentHistogram one;
  one.add(std::vector<float>{1.0f});
  counted.histogram = std::make_shared<const ExponentHistogram>(one);
  std::vector<std::string> of_histograms, others;
  const TraceReplay every({"all"}, {});
  for (const ReplayCandidate& candidate : every.candidates()) {
    const bool needs_histogram = candidate.scaler->needs() == GradientDetail::histogram;
    (needs_histogram ? of_histograms : others).push_back(candidate.name);
  }
  TraceReplay all({"all"}, {});
  all.step(without);
  all.step(counted);
  CHECK(all.left_out() == of_histograms);
  CHECK(names_of(all) == others);
  const auto refusal = [](TraceReplay& replay, const TraceStep& step) {
    return message_of<InvalidArgument>([&] { replay.step(step); });
  };
  TraceReplay begun({"all"}, {});
  begun.step(counted);
  CHECK(begun.left_out().empty());
  check_says(refusal(begun, without), {"step 5 has no histogram"});
  for (const char* beside : {"dynamic", "all"}) {
    TraceReplay named({beside, "popart"}, {});
    check_says(refusal(named, without), {"step 5 has no histogram"});
  }
}

TEST_CASE("a trace's steps are counted, and taken by every scaler", "[scaling][replay]") {
  TraceReplay replay({"dynamic", "64"}, {});
  for (const TraceStep& step :
       {TraceStep{.step = 3, .scale = 1, .max_abs = 2}, TraceStep{.step = 6, .scale = 1, .finite = false},
        TraceStep{.step = 9, .scale = 1, .max_abs = 1}}) {
    replay.step(step);
  }
  CHECK(replay.steps() == Steps{3, 6, 9});
  CHECK(replay.not_finite() == 1);
  // Step 4, which is not in the trace, is like step 3 and overflows too.
  CHECK(replay.candidates()[0].replay.scales() == Scales{65536, 16384, 8192});
  CHECK(replay.candidates()[0].replay.overflows() == Steps{3, 4, 6});
  CHECK(replay.candidates()[1].replay.scales() == Scales{64, 64, 64});
}

TEST_CASE("a setting goes to the scalers that have the option", "[scaling][replay]") {
  const ScalerSettings settings{{"initial_scale", 8}, {"margin", 2}};
  const TraceReplay replay({"dynamic", "headroom", "none"}, settings);
  CHECK(replay.candidates()[0].scaler->scale() == 8);
  CHECK(replay.candidates()[1].scaler->scale() == 8);
  CHECK(replay.candidates()[2].scaler->scale() == 1);
  const auto refusal = [](const std::string& name, const ScalerSettings& given) {
    return message_of<InvalidArgument>([&] { (void)TraceReplay({name}, given, "--set "); });
  };
  check_says(refusal("dynamic", settings), {"--set margin: none of the scalers has this option"});
  check_says(refusal("dynamic", {{"growth_interval", 2.5}}), {"growth_interval = '2.5': give an integer"});
  check_says(refusal("dynamik", {{"growth_interval", 2}}), {"did you mean 'dynamic'"});
  check_says(refusal("8", {{"initial_scale", 4}}), {"8 is a constant"});
  check_says(refusal("layerwise", {}), {"layerwise cannot be replayed"});
}

}  // namespace
}  // namespace halfscope::replay_test
