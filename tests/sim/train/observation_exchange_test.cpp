// Observations of ranks in several processes, joined as one process would have them.
#include "sim/train/observation_exchange.hpp"

#include <nlohmann/json.hpp>

#include <halfscope/stats/trackers.hpp>

#include "sim/train/processes.hpp"
#include "sim/train/records.hpp"
#include "tests/sim/small_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::observation_exchange_test {
namespace {

TraceRecord cast_of(int index, std::int64_t nonfinite = 0) {
  return {.tensor = "t" + std::to_string(index),
          .what = "activation",
          .elements = index,
          .nonfinite = nonfinite,
          .max_abs = 0.5f};
}

StepObservations trace_of(int first, int last) {
  StepObservations seen;
  for (int i = first; i < last; ++i) seen.trace.push_back(cast_of(i));
  return seen;
}

std::string text_of(const StepObservations& observations) {
  RecordText text;
  StepRecord record{.step = 1};
  record.observations = observations;
  if (observations.first_overflow) record.overflow = observations;
  append_record(text, record, nullptr);
  return text.metrics + text.histograms;
}

TEST_CASE("a step's observations come back from their bytes", "[ranks]") {
  TrainConfig config = small_config();
  config.observe_every = 1;
  config.observe_roles = "all";
  Trainer trainer(config, small_dataset);
  StepObservations seen = *trainer.step().observations;
  seen.updates.clear();  // the first process has them
  seen.trace = trace_of(0, 3).trace;
  seen.first_overflow = {TrainingPass::backward, OverflowCause::reduction, cast_of(9, 2)};
  REQUIRE((!seen.tensors.empty() && !seen.reductions.empty() && !seen.histograms.empty()));
  const std::string bytes = to_bytes(seen);
  CHECK(text_of(observations_from(bytes)) == text_of(seen));
  check_says(message_of<RuntimeFailure>(
                 [&] { (void)observations_from(std::string_view(bytes).substr(0, bytes.size() - 1)); }),
             {"end early"});
}

TEST_CASE("counts of a tensor add up, and one that a process alone has seen stays", "[ranks]") {
  StepObservations all, part;
  all.tensors = {
      {.tensor = "a", .role = Role::activation, .elements = 4, .counters = {.zeros = 1, .max_abs = 2}}};
  part.tensors = {
      {.tensor = "a", .role = Role::weight, .elements = 1},
      {.tensor = "a", .role = Role::activation, .elements = 3, .counters = {.zeros = 2, .max_abs = 1}}};
  ExponentHistogram ones;
  ones.add(std::vector<float>{1, 1, 1});
  all.histograms = {{.tensor = "a", .what = "weight_gradient", .histogram = ones}};
  part.histograms = {{.tensor = "a", .what = "weight_gradient", .histogram = ones},
                     {.tensor = "b", .what = "weight_gradient", .histogram = ones}};
  merge_observations(all, part);
  REQUIRE(all.tensors.size() == 2);
  CHECK((all.tensors[0].elements == 7 && all.tensors[0].counters.zeros == 3));
  CHECK(all.tensors[0].counters.max_abs == 2);
  CHECK(all.tensors[1].role == Role::weight);
  REQUIRE(all.histograms.size() == 2);
  CHECK((all.histograms[0].histogram.count(0) == 6 && all.histograms[1].histogram.count(0) == 3));
}

TEST_CASE("traces follow each other up to the first overflow", "[ranks]") {
  StepObservations all = trace_of(0, 15);
  StepObservations second = trace_of(15, 25);
  second.first_overflow = {TrainingPass::forward, OverflowCause::cast, cast_of(25, 1)};
  StepObservations third = trace_of(30, 35);
  third.first_overflow = {TrainingPass::forward, OverflowCause::cast, cast_of(35, 1)};
  merge_observations(all, second);
  merge_observations(all, third);
  REQUIRE(all.trace.size() == trace_length);
  CHECK((all.trace.front().tensor == "t5" && all.trace.back().tensor == "t24"));
  CHECK(all.first_overflow->source.tensor == "t25");
}

TEST_CASE("one process has every rank and every element", "[ranks]") {
  CHECK((process_count() == 1 && process_index() == 0 && local_process_count() == 1));
  CHECK((share_of(7, 0).first == 0 && share_of(7, 0).count == 7));
}

}  // namespace
}  // namespace halfscope::observation_exchange_test
