// Two executions of one model: differences of log-probabilities, and that nothing else notices.
#include "sim/train/second_execution.hpp"

#include <nlohmann/json.hpp>

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

TEST_CASE("log-probabilities of labels are those of their logits", "[executions]") {
  TrackerList nobody;
  Caster caster({}, 0, nobody);
  Tape tape(caster, Phase::evaluation);
  const TensorRef logits =
      tape.input("x", array_of({2, 3}, {0, std::log(2.0f), std::log(5.0f), 200, 0, -200}));
  const Batch batch{.labels = {1, 1}};
  const std::vector<double> found =
      label_log_probabilities(tape, {.loss = logits, .predictions = {logits}}, batch);
  CHECK(found[0] == Approx(std::log(0.25)));
  CHECK(found[1] == Approx(-200));
  check_says(message_of<InvalidArgument>(
                 [&] { (void)label_log_probabilities(tape, {.loss = logits, .predictions = {}}, batch); }),
             {"second_execution", "no row of logits for each label"});
}

TEST_CASE("gaps are summed over all predictions", "[executions]") {
  LogProbabilityGaps gaps;
  gaps.add({-1, -2}, {-1, -4});
  gaps.add({-3}, {-2});
  CHECK(gaps.gap().predictions == 3);
  CHECK(gaps.gap().rms == Approx(std::sqrt(5.0 / 3)));
  CHECK(gaps.gap().mean == Approx(1.0 / 3));
  CHECK(gaps.gap().largest == 2);
}

TEST_CASE("an execution equals itself, and one in BF16 is eight times as far from FP32 as one in FP16",
          "[executions]") {
  CHECK(gap_of("bf16_mixed", "order=tensor_core(hopper)").largest == 0);
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
  CHECK_FALSE(summary_in("plain").contains("log_probability_gap"));
  CHECK(summary_in("second").at("log_probability_gap").get<double>() > 0);
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
