// Predictors of harm on records made by hand, whose thresholds, counts and advice are known.
#include "experiments/analyses/harm.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/core/random.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/json/histogram_json.hpp>
#include <halfscope/scaling/advisor.hpp>

#include "experiments/analyses/harm_predictors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::harm_test {
namespace {

namespace fs = std::filesystem;

std::string gradient_line(int step, std::string_view role, const std::vector<float>& values) {
  ExponentHistogram histogram;
  histogram.add(values);
  return fmt::format(R"({{"step":{},"tensor":"t","role":"{}","scale":1.0,{}}})", step, role,
                     histogram_members(histogram)) +
         "\n";
}

/// A run that is done, with this training loss; null where it diverged.
void write_run(const fs::path& folder, std::int64_t seed, const Json& loss) {
  fs::create_directories(folder);
  const Json summary{{"seed", seed}, {"diverged", loss.is_null()}, {"train_loss", loss}};
  write_file(folder / "summary.json", to_text(summary));
}

constexpr int first_scale = -4, last_scale = 16;

std::string arm_name(const std::string& task, int scale_log2) {
  return fmt::format("{}_s{}", task, scale_log2);
}

/// A task whose two gradients are all 2^exponent, so that they are lost below 2^(-24 - exponent), and whose
/// trainings are harmed there, and at 2^16, where they diverge; with its arms.
void add_task(Experiment& experiment, const fs::path& folder, const std::string& name, int exponent,
              HarmSet set = HarmSet::fitted) {
  const HarmTask task{.name = name, .baseline = name + "_fp32", .set = set};
  experiment.harm_tasks.push_back(task);
  experiment.arms.push_back({task.baseline, "", {{"policy", "fp32"}}});
  const fs::path baseline = folder / task.baseline / "seed0";
  write_run(baseline, 0, 0.5);
  const std::vector<float> values(8, std::ldexp(1.0f, exponent));
  write_file(baseline / "histograms.jsonl",
             gradient_line(1, "activation_gradient", values) + gradient_line(1, "weight_gradient", values));
  Json probes = Json::array();
  for (int k = first_scale; k <= last_scale; k += 2) {
    const bool lost = k < -24 - exponent;
    probes.push_back({{"scale", std::ldexp(1.0, k)}, {"error", lost ? 0.9 : 0.01}});
    experiment.arms.push_back(
        {.name = arm_name(name, k),
         .summary = "",
         .settings = {{"policy", "fp16_mixed"}, {"loss_scale", fmt::format("{}", std::ldexp(1.0, k))}},
         .baseline = task.baseline});
    write_run(folder / arm_name(name, k) / "seed0", 0, k == last_scale ? Json() : Json(lost ? 0.6 : 0.51));
  }
  write_file(baseline / "metrics.jsonl", to_line({{"step", 1}, {"probes", probes}}) + "\n");
}

/// Task "a" alone, with its results in `folder`.
Experiment one_task(const TemporaryFolder& folder, int exponent = -28) {
  Experiment experiment{.name = "tasks", .varied = {"policy"}, .arms = {}};
  add_task(experiment, folder.path(), "a", exponent);
  return experiment;
}

const PredictorResult& find(const HarmEvidence& evidence, std::string_view name, PredictorSteps steps) {
  return *std::find_if(evidence.predictors.begin(), evidence.predictors.end(),
                       [&](const PredictorResult& p) { return p.name == name && p.steps == steps; });
}

TEST_CASE("predictors that know which trainings are harmed are right in all", "[harm]") {
  const TemporaryFolder folder;
  Experiment experiment = one_task(folder);
  add_task(experiment, folder.path(), "b", -22);
  add_task(experiment, folder.path(), "c", -25, HarmSet::held_out);
  const HarmEvidence evidence = judge_predictors(experiment, folder.path());
  CHECK(evidence.trainings.size() == 33);
  REQUIRE(evidence.predictors.size() == 3 * predictor_table.size());
  for (const PredictorEntry& entry : predictor_table) {
    const PredictorResult& result = find(evidence, entry.name, PredictorSteps::all);
    INFO(entry.name);
    CHECK(result.fitted.right == 20);  // one of each eleven diverged
    CHECK(result.fitted.total == 20);
    CHECK(result.held_out.right == 10);
    CHECK(result.held_out.total == 10);
    CHECK(result.low <= result.threshold);
    CHECK(result.threshold <= result.high);
  }
  CHECK(find(evidence, "probed error", PredictorSteps::first).threshold == Approx(std::sqrt(0.9 * 0.01)));
  // Divergence at 2^16 is not foreseen: no gradient overflows in FP32's records.
  CHECK(evidence.advisor.right == 20);
  CHECK(evidence.advisor.total == 22);
  CHECK(evidence.advisor_held_out.right == 10);
  CHECK(evidence.advisor_held_out.total == 11);
}

TEST_CASE("of several steps the first, the largest or the mean counts", "[harm]") {
  const TemporaryFolder folder;
  const Experiment experiment = one_task(folder);
  const fs::path baseline = folder.path() / "a_fp32" / "seed0";
  std::string records, histograms;
  for (const auto& [step, error] : {std::pair{1, 0.25}, {2, 1.0}, {3, 0.5}, {4, 0.25}}) {
    Json probes = Json::array();
    for (int k = first_scale; k <= last_scale; k += 2)
      probes.push_back({{"scale", std::ldexp(1.0, k)}, {"error", error}});
    records += to_line({{"step", step}, {"probes", probes}}) + "\n";
    histograms += gradient_line(step, "activation_gradient", {1.0f});
  }
  write_file(baseline / "metrics.jsonl", records);
  write_file(baseline / "histograms.jsonl", histograms);
  const HarmEvidence evidence = judge_predictors(experiment, folder.path());
  REQUIRE_FALSE(evidence.trainings.empty());
  for (const auto& [steps, value] :
       {std::pair{PredictorSteps::first, 0.25}, {PredictorSteps::all, 1.0}, {PredictorSteps::mean, 0.5}}) {
    const auto place = &find(evidence, "probed error", steps) - evidence.predictors.data();
    CHECK(evidence.trainings[0].predictors[static_cast<std::size_t>(place)] == value);
  }
}

TEST_CASE("a predictor that is wrong about some is counted so", "[harm]") {
  const TemporaryFolder folder;
  const Experiment experiment = one_task(folder);
  write_run(folder.path() / "a_s10" / "seed0", 0, 0.6);  // harmed, and nothing tells
  const HarmEvidence evidence = judge_predictors(experiment, folder.path());
  for (const PredictorResult& result : evidence.predictors) {
    CHECK(result.fitted.right == 9);
    CHECK(result.fitted.total == 10);
  }
}

TEST_CASE("harm that the norm does not tell is told by the sum of magnitudes", "[harm]") {
  const TemporaryFolder folder;
  const Experiment experiment = one_task(folder);
  std::vector<float> values(4096, 0x1p-28f);  // half of the sum, and 2^-12 of the energy
  values.push_back(0x1p-16f);
  const fs::path baseline = folder.path() / "a_fp32" / "seed0";
  write_file(baseline / "histograms.jsonl", gradient_line(1, "activation_gradient", values));
  const HarmEvidence evidence = judge_predictors(experiment, folder.path());
  CHECK(find(evidence, "worst flushed magnitude", PredictorSteps::all).fitted.right == 10);
  CHECK(evidence.advisor.right == 10);
  CHECK(evidence.advisor.total == 11);
  CHECK(evidence.advice[0].enough_from == 4);
  const std::vector<WatchedStep> steps = read_watched_steps(baseline);
  CHECK(worst_flushed_magnitude(steps[0], 2) == Approx(0.5));
  CHECK(worst_underflow(steps[0], 2).value() < 0.02);
}

TEST_CASE("the advisor's answer stands beside the nearest training below it", "[harm]") {
  const TemporaryFolder folder;
  Experiment experiment = one_task(folder);
  write_run(folder.path() / "a_s14" / "seed0", 0, 0.53);
  const HarmEvidence evidence = judge_predictors(experiment, folder.path());
  REQUIRE(evidence.advice.size() == 1);
  const TaskAdvice& advice = evidence.advice[0];
  CHECK(advice.format == "fp16");
  CHECK(advice.enough_from == 4);
  CHECK(advice.overflow_beyond == 43);
  CHECK(advice.use == 24);
  CHECK(advice.trained_at == 16);
  CHECK_FALSE(advice.loss_ratio.has_value());  // it diverged there
  experiment.arms.pop_back();
  CHECK(judge_predictors(experiment, folder.path()).advice[0].trained_at == 14);
  CHECK(judge_predictors(experiment, folder.path()).advice[0].loss_ratio == Approx(0.53 / 0.5));
}

TEST_CASE("losses that are logs of perplexities are compared as perplexities", "[harm]") {
  const TemporaryFolder folder;
  Experiment experiment = one_task(folder);
  experiment.harm_tasks[0].loss = LossKind::log_perplexity;
  const HarmEvidence evidence = judge_predictors(experiment, folder.path());
  CHECK(evidence.trainings[0].loss_ratio.value() == Approx(std::exp(0.1)));
  CHECK(evidence.trainings[0].harmed());
}

TEST_CASE("without an FP32 run there is no evidence", "[harm]") {
  const TemporaryFolder folder;
  const Experiment experiment = one_task(folder);
  fs::remove_all(folder.path() / "a_fp32");
  const HarmEvidence evidence = judge_predictors(experiment, folder.path());
  CHECK(evidence.trainings.empty());
  CHECK(evidence.advice.empty());
}

TEST_CASE("of several steps a predictor takes the worst or the first", "[harm]") {
  const TemporaryFolder folder;
  (void)one_task(folder, -20);
  const fs::path file = folder.path() / "a_fp32/seed0/histograms.jsonl";
  write_file(file, read_file(file) + gradient_line(2, "activation_gradient", {0x1p-28f}));
  write_file(file, read_file(file) + R"({"step":3,)");  // still being written
  const auto steps = read_watched_steps(folder.path() / "a_fp32/seed0");
  REQUIRE(steps.size() == 2);
  CHECK(worst_underflow(steps[0], 0) == 0.0);
  CHECK(worst_underflow(steps[1], 0) == 1.0);
  CHECK(flushed_share(steps[1], 0) == 1.0);
  CHECK(std::isinf(worst_underflow(steps[0], 40).value()));  // 2^20 overflows
  CHECK_FALSE(probed_error(steps[1], 0).has_value());
}

/// Casts the activation gradients of all arms but FP32's to `format`.
void cast_to(Experiment& experiment, const std::string& format) {
  for (Arm& arm : experiment.arms)
    if (!arm.baseline.empty()) arm.settings.emplace_back("activation_gradient", format);
}

TEST_CASE("the advice is for the format that the arms cast gradients to", "[harm]") {
  for (const auto& [format, low, high] :
       {std::tuple{"fp16", 4, 43}, {"e4m10", 12, 35}, {"e3m10", 16, 31}, {"fp8_e5m2", 12, 42}}) {
    const TemporaryFolder folder;
    Experiment experiment = one_task(folder);  // 2^-28
    cast_to(experiment, format);
    const HarmEvidence evidence = judge_predictors(experiment, folder.path());
    INFO(format);
    REQUIRE(evidence.advice.size() == 1);
    CHECK(evidence.advice[0].format == format);
    CHECK(evidence.advice[0].enough_from == low);
    CHECK(evidence.advice[0].overflow_beyond == high);
  }
  const TemporaryFolder folder;
  Experiment experiment = one_task(folder);
  experiment.arms.back().settings.emplace_back("activation_gradient", "e4m10");
  CHECK_THROWS_AS(judge_predictors(experiment, folder.path()), InvalidArgument);
}

TEST_CASE("counts at FP16's edges tell the window of any format to a binade", "[harm]") {
  const RandomStream random{.seed = 7};
  std::uint64_t drawn = 0;
  for (const char* name : {"fp16", "e4m10", "e6m10", "fp8_e5m2", "fp8_e4m3", "e4m7"}) {
    const FloatFormat format = parse_format(name);
    for (int trial = 0; trial < 40; ++trial) {
      std::vector<float> values(50);
      for (float& value : values) {
        const int binade = -static_cast<int>(random.bits(drawn) % 12);
        value = std::ldexp(1 + random.uniform(drawn + 1), binade);
        drawn += 2;
      }
      const TemporaryFolder folder;
      write_file(folder.path() / "histograms.jsonl", gradient_line(1, "activation_gradient", values));
      const auto steps = read_watched_steps(folder.path(), format);
      const TensorFit read = fit_tensor("t", steps[0].gradients[0].histogram);
      ExponentHistogram counted(format);
      counted.add(values);
      const TensorFit exact = fit_tensor("t", counted);
      INFO(name << " " << trial);
      const int off = format.mantissa_bits == 10 ? 0 : 1;
      CHECK(std::abs(read.underflow_low - exact.underflow_low) <= off);
      CHECK(std::abs(read.overflow_high - exact.overflow_high) <= off);
    }
  }
}

TEST_CASE("without probes the other predictors are judged", "[harm]") {
  const TemporaryFolder folder;
  const Experiment experiment = one_task(folder);
  fs::remove(folder.path() / "a_fp32/seed0/metrics.jsonl");
  const HarmEvidence evidence = judge_predictors(experiment, folder.path());
  CHECK(evidence.trainings.size() == 11);
  REQUIRE(evidence.predictors.size() == 3 * (predictor_table.size() - 1));
  for (const PredictorResult& result : evidence.predictors) {
    CHECK(result.name != "probed error");
    CHECK(result.fitted.right == 10);
  }
}

TEST_CASE("a scaler that moves its scale is no constant scale", "[harm]") {
  const TemporaryFolder folder;
  Experiment experiment = one_task(folder);
  experiment.arms.push_back({.name = "a_dynamic",
                             .summary = "",
                             .settings = {{"policy", "fp16_mixed"}, {"loss_scale", "dynamic"}},
                             .baseline = "a_fp32"});
  write_run(folder.path() / "a_dynamic/seed0", 0, 0.505);
  HarmEvidence evidence = judge_predictors(experiment, folder.path());
  CHECK(evidence.trainings.size() == 11);
  REQUIRE(evidence.scalers.size() == 1);
  CHECK(evidence.scalers[0].loss_ratio == Approx(1.01));
  CHECK_FALSE(evidence.scalers[0].harmed());
  write_run(folder.path() / "a_dynamic/seed0", 0, Json());
  evidence = judge_predictors(experiment, folder.path());
  CHECK(evidence.scalers[0].harmed());
}

TEST_CASE("where no scale fits all tensors the advice is below overflow", "[harm]") {
  const TemporaryFolder folder;
  const Experiment experiment = one_task(folder, -10);
  const fs::path file = folder.path() / "a_fp32/seed0/histograms.jsonl";
  write_file(file, gradient_line(1, "activation_gradient", {0x1p-60f}) +
                       gradient_line(1, "activation_gradient", {0x1p-10f}) +
                       gradient_line(1, "weight_gradient", {0x1p-10f}));
  const HarmEvidence evidence = judge_predictors(experiment, folder.path());
  REQUIRE(evidence.advice.size() == 1);
  CHECK(evidence.advice[0].enough_from == 36);
  CHECK(evidence.advice[0].overflow_beyond == 25);
  CHECK(evidence.advice[0].use == 24);
}

}  // namespace
}  // namespace halfscope::harm_test
