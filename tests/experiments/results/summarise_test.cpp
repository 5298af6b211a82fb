// Summaries of an experiment: means and intervals over seeds, divergence, malformed runs.
#include "experiments/results/summarise.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

#include "experiments/results/arm_columns.hpp"
#include "experiments/results/arm_table.hpp"
#include "experiments/results/comparison.hpp"
#include "tests/experiments/synthetic_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::summarise_test {
namespace {

Experiment two_arms() {
  return {.name = "tiny", .varied = {"policy"}, .arms = {{"one", "", {}}, {"two", "", {}}}};
}

/// The summary of arm "one", the only one in `folder`.
ArmSummary only_arm(const TemporaryFolder& folder, const Experiment& experiment = two_arms()) {
  const ExperimentSummary summary = summarise(experiment, folder.path());
  REQUIRE(summary.arms.size() == 1);
  CHECK(summary.arms[0].arm == "one");
  return summary.arms[0];
}

TEST_CASE("an arm has the mean and the interval of its seeds, in the order of the seeds", "[summarise]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 10, {{"metric", 70.0}});
  put_run(folder, "one", 2, {{"metric", 61.0}});
  put_run(folder, "one", 0, {{"metric", 64.0}});
  const ArmSummary arm = only_arm(folder);
  CHECK(arm.values == std::vector<std::optional<double>>{64.0, 61.0, 70.0});
  CHECK(arm.mean == 65.0);
  const double half_width = 4.302652729911 * std::sqrt(21.0 / 3.0);  // deviations -1, -4, 5
  REQUIRE((arm.low && arm.high));
  CHECK(*arm.low == Approx(65 - half_width));
  CHECK(*arm.high == Approx(65 + half_width));
  CHECK(arm.diverged == 0);
  CHECK_FALSE(arm.diverged_step);
}

TEST_CASE("seeds that diverge count, but not into the mean", "[summarise]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 0, diverged_at(40));
  put_run(folder, "one", 1, {{"metric", 62.0}});
  put_run(folder, "one", 2, diverged_at(17));
  const ArmSummary mixed = only_arm(folder);
  CHECK(mixed.values == std::vector<std::optional<double>>{std::nullopt, 62.0, std::nullopt});
  CHECK(mixed.mean == 62.0);
  CHECK_FALSE(mixed.low);  // one value scatters by nothing that is known
  CHECK_FALSE(mixed.high);
  CHECK(mixed.diverged == 2);
  CHECK(mixed.diverged_step == 17);

  put_run(folder, "one", 1, diverged_at(90));
  const ArmSummary all = only_arm(folder);
  CHECK(all.diverged == 3);
  CHECK_FALSE(all.mean);
}

TEST_CASE("an arm is judged by the experiment's own metric", "[summarise]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 0, {{"train_loss", 0.25}});
  put_run(folder, "one", 1, {{"train_loss", nullptr}});  // a loss that was never finite
  Experiment experiment = two_arms();
  experiment.metric.key = "train_loss";
  const ArmSummary arm = only_arm(folder, experiment);
  CHECK(arm.mean == 0.25);
  CHECK(arm.values == std::vector<std::optional<double>>{0.25, std::nullopt});
  CHECK(arm.diverged == 0);
}

Experiment of_perplexity() {
  Experiment experiment = two_arms();
  experiment.metric = {
      .name = "perplexity", .unit = "", .comparison = Comparison::ratio, .lower_is_better = true};
  return experiment;
}

TEST_CASE("a metric that is compared by ratio has its interval on the logarithm", "[summarise]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 0, {{"metric", 10.0}});
  put_run(folder, "one", 1, {{"metric", 1000.0}});
  const ArmSummary arm = only_arm(folder, of_perplexity());
  const double half_width = 12.7062047361747 * std::log(10.0);  // deviations of the logarithms: +- log(10)
  CHECK(arm.mean == 505);
  CHECK(arm.low.value() == Approx(100 * std::exp(-half_width)));
  CHECK(arm.high.value() == Approx(100 * std::exp(half_width)));
  CHECK(arm.low.value() > 0);
}

TEST_CASE("a run that ends beyond ten times the untrained model diverged", "[summarise]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 0, {{"metric", 1000.0}, {"initial_metric", 100.0}});
  put_run(folder, "one", 1, {{"metric", 1001.0}, {"initial_metric", 100.0}});
  put_run(folder, "one", 2, {{"metric", 1e9}});  // without a note there is nothing to compare with
  const ArmSummary arm = only_arm(folder, of_perplexity());
  CHECK(arm.values == std::vector<std::optional<double>>{1000.0, std::nullopt, 1e9});
  CHECK((arm.diverged == 1 && arm.beyond == 1 && !arm.diverged_step));
  CHECK(only_arm(folder).diverged == 0);  // more accuracy is better
  check_says(diverged_words(arm),
             {"one diverged in 1 of 3 seeds (1 ended beyond 10 times the untrained model)"});

  Experiment of_loss = of_perplexity();
  of_loss.metric.key = "train_loss";
  put_run(folder, "one", 0, {{"train_loss", 31.0}, {"initial_loss", 3.0}});
  put_run(folder, "one", 1, {{"train_loss", 29.0}, {"initial_loss", 3.0}});
  put_run(folder, "one", 2, diverged_at(5));
  const ArmSummary lossy = only_arm(folder, of_loss);
  CHECK(lossy.values == std::vector<std::optional<double>>{std::nullopt, 29.0, std::nullopt});
  CHECK((lossy.diverged == 2 && lossy.beyond == 1 && lossy.diverged_step == 5));
}

TEST_CASE("gradients that an arm flushed and those that FP16 would flush are columns apart", "[summarise]") {
  const TemporaryFolder folder;
  const auto put = [&](const std::string& arm, const char* format) {
    put_run(folder, arm, 0,
            {{"gradients", {{"nonzero", 100}, {"flushed", 25}, {"subnormal", 0}, {"overflow", 0}}}});
    folder.put(arm + "/seed0/config.json",
               Json{{"format_version", 1}, {"activation_gradient", format}}.dump());
  };
  put("one", "fp32");
  put("two", "fp16");
  const ExperimentSummary summary = summarise(two_arms(), folder.path());
  const ArmSummary &fp32 = *summary.find("one"), &fp16 = *summary.find("two");
  CHECK((fp32.in_fp32 && !fp16.in_fp32));
  CHECK((fp32.column("flushed") == 0.25 && fp16.column("flushed") == 0.25));
  CHECK((fp32.column("fp16_would_flush") == 0.25 && !fp32.column("fp16_flushed")));
  CHECK((fp16.column("fp16_flushed") == 0.25 && !fp16.column("fp16_would_flush")));
  const std::string table = write_table(arm_table(two_arms(), summary, TableFormat::csv), {TableFormat::csv});
  check_says(table, {"flushed,would_flush,", "one,1,50,,,0,,,0.25,", "two,1,50,,,0,,0.25,,"});
}

Json gradients(int nonzero, int flushed, int subnormal, int overflow) {
  return {{"nonzero", nonzero}, {"flushed", flushed}, {"subnormal", subnormal}, {"overflow", overflow}};
}

TEST_CASE("the other columns are means, the latest, the median or the most", "[summarise]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 0,
          {{"lost_updates", 0.5},
           {"accuracy", 20.0},
           {"gradients", gradients(100, 40, 20, 1)},
           {"skipped", 3},
           {"last_skipped_step", 90},
           {"final_scale", 1024.0},
           {"first_at_final_scale", 7},
           {"seconds_per_step", 0.4},
           {"peak_device_bytes", nullptr},
           {"overflows", Json::array()}});
  put_run(folder, "one", 1,
          {{"lost_updates", 0.25},
           {"accuracy", 30.0},
           {"gradients", gradients(10, 2, 0, 0)},
           {"skipped", 0},
           {"last_skipped_step", nullptr},
           {"final_scale", 4096.0},
           {"first_at_final_scale", 9},
           {"seconds_per_step", 0.1},
           {"peak_device_bytes", 700},
           {"overflows", {"step 3: first"}}});
  put_run(folder, "one", 2,
          {{"gradients", gradients(0, 0, 0, 0)},
           {"last_skipped_step", 30},
           {"seconds_per_step", 0.2},
           {"peak_device_bytes", 600},
           {"memory", {{"roles", Json::array()}, {"peak_step_bytes", 5000}}},
           {"overflows", {"step 4: second"}}});
  const ArmSummary arm = only_arm(folder);
  CHECK(arm.column("lost_updates") == 0.375);
  CHECK(arm.column("accuracy") == 25);
  REQUIRE(arm.column("flushed"));
  CHECK(*arm.column("flushed") == Approx(0.3));  // mean of 40 % and 20 %, whatever their elements
  CHECK(arm.column("subnormal") == 0.1);
  CHECK(arm.column("overflow") == 0.005);
  CHECK(arm.column("skipped") == 1.5);
  CHECK(arm.column("last_skipped_step") == 90);
  CHECK(arm.column("final_scale_log2") == 11);
  CHECK(arm.column("first_at_final_scale") == 8);
  CHECK(arm.column("seconds_per_step") == 0.2);
  CHECK(arm.column("peak_device_bytes") == 700);
  CHECK(arm.column("peak_step_bytes") == 5000);  // other runs are of earlier versions
  CHECK(arm.overflows == std::vector<std::string>{"step 3: first"});
}

TEST_CASE("what no run says stays empty", "[summarise]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 0);
  const ArmSummary arm = only_arm(folder);
  CHECK(arm.mean == 50.0);
  CHECK_FALSE((arm.low || arm.high));
  for (const std::string_view key : arm_column_keys()) {
    CAPTURE(key);
    CHECK_FALSE(arm.column(key));
  }
  CHECK(arm.overflows.empty());
}

TEST_CASE("arms come in the experiment's order, those without a finished run not at all", "[summarise]") {
  const TemporaryFolder folder;
  CHECK(summarise(two_arms(), folder.path()).arms.empty());
  put_run(folder, "two", 0);
  folder.put("one/seed0/status", "RUNNING\n");
  put_run(folder, "stranger", 0);
  CHECK(summarise(two_arms(), folder.path()).find("one") == nullptr);
  put_run(folder, "one", 0);
  const ExperimentSummary summary = summarise(two_arms(), folder.path());
  REQUIRE(summary.arms.size() == 2);
  CHECK(summary.arms[0].arm == "one");
  CHECK(summary.find("two") == &summary.arms[1]);
  CHECK(summary.find("stranger") == nullptr);
}

TEST_CASE("a summary that is none is refused with its file", "[summarise]") {
  const auto refusal = [](const std::string& text) {
    const TemporaryFolder folder;
    folder.put("one/seed0/summary.json", text);
    return message_of<InvalidArgument>([&] { (void)summarise(two_arms(), folder.path()); });
  };
  check_says(refusal("{"), {"one/seed0/summary.json"});
  check_says(refusal(R"({"format_version":2,"seed":0})"), {"summary.json", "format 2", "format 1"});
  check_says(refusal(R"({"format_version":1,"seed":0,"diverged":false,"metric":1})"),
             {"summary.json", "lacks the key 'train_loss'"});
}

TEST_CASE("losses of all-reduces are shares of all seeds together", "[summarise]") {
  const TemporaryFolder folder;
  Json counters{
      {"elements", 100},         {"adds", 300},        {"stagnated", 30},       {"addends_flushed", 4},
      {"addends_overflowed", 0}, {"means_flushed", 0}, {"means_overflowed", 1}, {"steps", 5},
      {"stagnated_steps", 2}};
  put_run(folder, "one", 0, {{"all_reduce", counters}});
  counters["stagnated"] = 0;
  put_run(folder, "one", 1, {{"all_reduce", counters}});
  const ArmSummary arm = only_arm(folder);
  CHECK(arm.column("all_reduce.ranks") == 4);
  CHECK(arm.column("all_reduce.stagnated").value() == Approx(30.0 / 600));
  CHECK(arm.column("all_reduce.flushed").value() == Approx(8.0 / 800));
  CHECK(arm.column("all_reduce.overflowed").value() == Approx(2.0 / 200));
  CHECK(arm.column("all_reduce.stagnated_steps").value() == Approx(4.0 / 10));
  counters.erase("adds");
  put_run(folder, "one", 1, {{"all_reduce", counters}});
  check_says(message_of<InvalidArgument>([&] { (void)summarise(two_arms(), folder.path()); }),
             {"seed1", "lacks the key 'adds'"});
}

}  // namespace
}  // namespace halfscope::summarise_test
