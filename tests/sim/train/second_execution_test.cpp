// Two executions of one model: differences of log-probabilities, and that nothing else notices.
#include "sim/train/second_execution.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "sim/tape/tape.hpp"
#include "tests/sim/few_words.hpp"
#include "tests/sim/small_runs.hpp"
#include "tests/support/array_of.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::second_execution_test {
namespace {

TrainConfig llama_config(const std::string& policy, const std::string& second) {
  TrainConfig config{.model = "llama", .steps = 20, .batch = 8, .learning_rate = 3e-3, .policy = policy};
  config.model_options = {{"embedding_size", 32}, {"hidden_size", 48}, {"layers", 1}};
  config.evaluation.second_execution = second;
  return config;
}

LogProbabilityGap gap_of(const std::string& policy, const std::string& second) {
  const FewWords words;
  Trainer trainer(llama_config(policy, second), words);
  for (int i = 0; i < 20; ++i) (void)trainer.step();
  return trainer.compare_executions().value();
}

TEST_CASE("labels have the logits that a model predicts them with", "[executions]") {
  TrackerList nobody;
  Caster caster({}, 0, nobody);
  Tape tape(caster, Phase::evaluation);
  const std::vector<float> values{0, 1, 2, 3, 4, 5};
  const TensorRef logits = tape.input("x", array_of({2, 3}, values));
  const Batch batch{.labels = {1, 2}};
  const LabelLogits found = label_logits(tape, {.loss = logits, .predictions = {logits}}, batch);
  CHECK(std::ranges::equal(found.logits.values(), values));
  CHECK(found.labels == batch.labels);
  check_says(message_of<InvalidArgument>(
                 [&] { (void)label_logits(tape, {.loss = logits, .predictions = {}}, batch); }),
             {"second_execution", "no row of logits for each label"});
}

/// Logits of shares, which differ from their logarithms by a number of each row.
LabelLogits with_shares(const std::vector<std::vector<double>>& shares, std::vector<std::int32_t> labels) {
  Array logits({std::ssize(shares), std::ssize(shares[0])});
  float* to = logits.data();
  for (std::size_t row = 0; row < shares.size(); ++row)
    for (const double share : shares[row])
      *to++ = static_cast<float>(std::log(share) + 10.0 * static_cast<double>(row) - 5);
  return {std::move(logits), std::move(labels)};
}

TEST_CASE("gaps and the divergence are those of known shares, over all predictions", "[executions]") {
  LogProbabilityGaps gaps;
  gaps.add(with_shares({{0.25, 0.5, 0.25}, {0.125, 0.75, 0.125}}, {0, 1}),
           with_shares({{0.5, 0.25, 0.25}, {0.25, 0.25, 0.5}}, {0, 1}));
  gaps.add(with_shares({{0.9, 0.05, 0.05}}, {2}), with_shares({{0.9, 0.05, 0.05}}, {2}));
  const LogProbabilityGap gap = gaps.gap();
  const double first = -std::log(2.0), second = std::log(3.0);
  CHECK(gap.predictions == 3);
  CHECK(gap.mean == Approx((first + second) / 3).epsilon(1e-5));
  CHECK(gap.rms == Approx(std::sqrt((first * first + second * second) / 3)).epsilon(1e-5));
  CHECK(gap.largest == Approx(second).epsilon(1e-5));
  // Shares of the second execution times logarithms of its ratio to the first.
  const double one = 0.5 * std::log(2.0) - 0.25 * std::log(2.0);
  const double two = 0.25 * std::log(2.0) - 0.25 * std::log(3.0) + 0.5 * std::log(4.0);
  CHECK(gap.divergence == Approx((one + two) / 3).epsilon(1e-5));
}

TEST_CASE("logits far apart have a finite divergence", "[executions]") {
  LogProbabilityGaps gaps;
  gaps.add({array_of({1, 3}, {200, 0, -200}), {1}}, {array_of({1, 3}, {0, 0, 0}), {1}});
  CHECK(gaps.gap().mean == Approx(std::log(3.0) - 200));
  CHECK(gaps.gap().divergence == Approx(200 - std::log(3.0)));
}

TEST_CASE("the divergence of a small change is half of its variance", "[executions]") {
  // logits z + t e: KL(z, z + t e) = t^2 Var(e) / 2 + O(t^3)
  const std::vector<double> shares{0.1, 0.2, 0.3, 0.4}, change{1, -1, 0.5, 0.25};
  const auto moved = [&](double t) {
    Array logits({1, 4});
    for (std::size_t i = 0; i < 4; ++i)
      logits.data()[i] = static_cast<float>(std::log(shares[i]) + t * change[i]);
    return LabelLogits{std::move(logits), {0}};
  };
  double mean = 0, square = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    mean += shares[i] * change[i];
    square += shares[i] * change[i] * change[i];
  }
  for (const double t : {0.01, 0.02}) {
    LogProbabilityGaps gaps;
    gaps.add(moved(t), moved(0));
    CHECK(gaps.gap().divergence == Approx(t * t * (square - mean * mean) / 2).epsilon(0.02));
  }
}

TEST_CASE("an execution equals itself, and one in BF16 is eight times as far from FP32 as one in FP16",
          "[executions]") {
  CHECK(gap_of("bf16_mixed", "order=tensor_core(hopper)").largest == 0);
  CHECK(gap_of("bf16_mixed", "order=tensor_core(hopper)").divergence == 0);
  CHECK(gap_of("fp32", "policy=fp32").largest == 0);
  const double bf16 = gap_of("bf16_mixed", "policy=fp32").rms, fp16 = gap_of("fp16_mixed", "policy=fp32").rms;
  CHECK(bf16 / fp16 > 5);
  CHECK(bf16 / fp16 < 12);
  const double order = gap_of("fp32", "order=fp32_sequential").rms;
  CHECK(order > 0);
  CHECK(order < fp16 / 100);
}

TEST_CASE("a training does not notice its second execution", "[executions][run]") {
  const TemporaryFolder temporary;
  TrainConfig config = small_config();
  const Records expected = run_in(temporary.path() / "plain", config);
  config.evaluation.second_execution = "policy=fp32";
  const auto summary_in = [&](const char* name) {
    return read_json(temporary.path() / name / "experiment/arm/seed0/summary.json");
  };
  CHECK(run_in(temporary.path() / "second", config) == expected);
  for (const char* key : {"log_probability_gap", "kl_divergence"}) {
    CHECK_FALSE(summary_in("plain").contains(key));
    CHECK(summary_in("second").at(key).get<double>() > 0);
  }
  for (const std::int64_t stop : {9, 30}) {
    const RunFolder folder(temporary.path() / std::to_string(stop), {"experiment", "arm", 0});
    CHECK_THROWS_AS(run_training(parsed(config), small_dataset, folder, killed_at(stop)), Killed);
    run_training(parsed(config), small_dataset, folder, ignore);
    CHECK(read_json(folder.path() / "summary.json").at("log_probability_gap") ==
          summary_in("second").at("log_probability_gap"));
  }
}

TEST_CASE("a config without a second execution is that of earlier versions", "[executions][config]") {
  TrainConfig config;
  CHECK_FALSE(to_json(parsed(config).config).contains("second_execution"));
  set_field(config, "second_execution", "policy=fp32");
  CHECK(to_json(parsed(config).config).at("second_execution") == "policy=fp32");
}

TEST_CASE("a second execution is a policy or a sum of products", "[executions]") {
  const auto message = [](const char* text) {
    return message_of<InvalidArgument>([&] { (void)parse_second_execution(text, {}); });
  };
  for (const char* text : {"fp32", "policy=", "order=", "sum_order=fp32_pairwise"})
    check_says(message(text), {"second_execution", text, "policy=NAME or order=ORDER"});
  check_says(message("policy=bf61_mixed"), {"bf61_mixed", "bf16_mixed"});
  check_says(message("order=tensor_core(hoper)"), {"hopper"});
  check_says(message("order=fp16_kahan"), {"fp16_kahan"});
  const PrecisionPolicy other = parse_second_execution("order=tensor_core(ampere)", bf16_kahan_policy());
  CHECK(other.quantizer(Role::activation).format == bf16);
  CHECK(other.products == parse_accumulate_model("tensor_core(ampere)"));
}

}  // namespace
}  // namespace halfscope::second_execution_test
