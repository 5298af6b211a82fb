// Summaries as JSON and as the table of the terminal, each from a summary made by hand.
#include "experiments/results/report_text.hpp"
#include "experiments/results/summary_json.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

namespace halfscope::present_test {
namespace {

std::string verdict(const ExperimentSummary& summary) {
  return summary.arms.empty() ? "Nothing." : "Something.";
}

Experiment experiment() {
  return {.name = "tiny",
          .summary = "a small one",
          .paper = "Section 0: nothing.",
          .varied = {"policy"},
          .predicts_from = "fp32",
          .arms = {{"fp32", "", {}}, {"fp16_mixed", "", {}}},
          .verdict = verdict};
}

/// FP32 with an interval, FP16 with a seed that diverged.
ExperimentSummary summary() {
  return {.metric = {},
          .arms = {{.arm = "fp32",
                    .values = {65.0, 66.0},
                    .mean = 65.5,
                    .low = 59.147,
                    .high = 71.853,
                    .lost_updates = 0.0,
                    .flushed = 0.0,
                    .skipped = 0,
                    .seconds_per_step = 0.0123},
                   {.arm = "fp16_mixed",
                    .values = {64.0, std::nullopt},
                    .mean = 64.0,
                    .diverged = 1,
                    .diverged_step = 9,
                    .flushed = 0.1234,
                    .skipped = 2.5,
                    .final_scale_log2 = 12.5}}};
}

TEST_CASE("JSON has every column of every arm, and null for what is not known", "[present]") {
  const Json json = to_json(experiment(), summary());
  CHECK(json["format_version"] == 1);
  CHECK(json["experiment"] == "tiny");
  CHECK(json["metric"] == "test accuracy");
  CHECK(json["unit"] == "%");
  CHECK(json["lower_is_better"] == false);
  CHECK(json["verdict"] == "Something.");
  CHECK(json["predictions"] == Json::array());
  CHECK_FALSE(json.contains("accumulation"));
  REQUIRE(json["arms"].size() == 2);
  const Json &fp32 = json["arms"][0], &mixed = json["arms"][1];
  CHECK(fp32["seeds"] == 2);
  CHECK(fp32["low"] == 59.147);
  CHECK(fp32["high"] == 71.853);
  CHECK(fp32["diverged_step"].is_null());
  CHECK(mixed["arm"] == "fp16_mixed");
  CHECK(mixed["values"] == Json{64.0, nullptr});
  CHECK(mixed["low"].is_null());
  CHECK(mixed["diverged"] == 1);
  CHECK(mixed["diverged_step"] == 9);
  CHECK(mixed["lost_updates"].is_null());
  CHECK(mixed["final_scale_log2"] == 12.5);
  CHECK(to_json(experiment(), {.metric = {}, .arms = {}})["verdict"] == "Nothing.");
}

TEST_CASE("the table has a line per arm, then the paper and the verdict", "[present]") {
  CHECK(to_table(experiment(), summary()) ==
        "tiny: a small one\n"
        "\n"
        "  arm          seeds  test accuracy %   95 % interval  diverged  skipped  flushed  lost updates  "
        "ms/step\n"
        "  fp32             2            65.50  59.15 .. 71.85         -        0    0.0 %         0.0 %     "
        "12.3\n"
        "  fp16_mixed       2            64.00               -    1 of 2        2   12.3 %             -     "
        "   -\n"
        "\n"
        "  paper:   Section 0: nothing.\n"
        "  verdict: Something.\n");
}

/// The cells of the line of a table that starts with `first`.
std::string line_of(const std::string& table, const std::string& first) {
  const std::size_t begin = table.find("\n  " + first);
  REQUIRE(begin != std::string::npos);
  return table.substr(begin + 1, table.find('\n', begin + 1) - begin - 1);
}

TEST_CASE("the paper's rows stand beside ours, those of no arm left out", "[present]") {
  Experiment ours = experiment();
  CHECK_FALSE(to_json(ours, summary()).contains("published"));
  ours.published = {{"Net", "fp32", "fp16_mixed", 56.77, 56.93},
                    {"Net of no paper", "fp32", "other"},
                    {"Net of no run", "no", "other", 1, 2}};
  const std::string table = to_table(ours, summary());
  CHECK(table.find(
            "Net               65.50  64.00       -1.50                    1.00         56.77  56.93       "
            "+0.16\n") != std::string::npos);
  CHECK(
      table.find(
          "Net of no paper   65.50      -           -                    1.00             -      -           "
          "-\n") != std::string::npos);
  CHECK(table.find("Net of no run") == std::string::npos);
  const Json rows = to_json(ours, summary())["published"];
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] == Json{{"row", "Net"},
                        {"baseline", 65.5},
                        {"arm", 64.0},
                        {"spread", 1.0},
                        {"paper_baseline", 56.77},
                        {"paper_arm", 56.93}});
  CHECK(rows[2]["arm"].is_null());
}

TEST_CASE("scale and memory have columns where there is something to say", "[present]") {
  Experiment shown = experiment();
  shown.scale_columns = ScaleColumns::shown;
  ExperimentSummary with_memory = summary();
  with_memory.arms[0].peak_device_bytes = 700.0 * (1 << 20);
  with_memory.arms[1].last_skipped = 30;
  with_memory.arms[1].first_at_final_scale = 7;
  const std::string table = to_table(shown, with_memory);
  CHECK(line_of(table, "arm").ends_with(" ms/step  last skip  log2 final scale  first at it  peak MiB"));
  CHECK(line_of(table, "fp32").ends_with("    12.3          -                 -            -       700"));
  CHECK(
      line_of(table, "fp16_mixed").ends_with("       -         30              12.5            7         -"));
}

TEST_CASE("bytes of a step have a column where the experiment shows them and a run says them", "[present]") {
  Experiment shown = experiment();
  ExperimentSummary counted = summary();
  counted.arms[0].peak_step_bytes = 1'234'567;
  CHECK(line_of(to_table(shown, counted), "arm").ends_with(" ms/step"));
  shown.memory_column = MemoryColumn::shown;
  CHECK(line_of(to_table(shown, summary()), "arm").ends_with(" ms/step"));
  const std::string table = to_table(shown, counted);
  CHECK(line_of(table, "arm").ends_with(" ms/step  step MB"));
  CHECK(line_of(table, "fp32").ends_with("    12.3     1.23"));
  CHECK(to_json(shown, counted).at("arms")[0].at("peak_step_bytes") == 1'234'567);
  CHECK_FALSE(to_json(shown, summary()).at("arms")[0].contains("peak_step_bytes"));
}

TEST_CASE("overflows are a line per arm that had any", "[present]") {
  ExperimentSummary overflowing = summary();
  CHECK(to_table(experiment(), overflowing).find("overflows") == std::string::npos);
  overflowing.arms[0].overflows = {"step 3: one"};
  overflowing.arms[1].overflows = {"step 4: two", "step 5: three", "step 6: four"};
  const std::string table = to_table(experiment(), overflowing);
  CHECK(table.find(
            "\n  overflows\n  fp32: step 3: one\n  fp16_mixed: step 4: two; 2 more steps overflowed\n") !=
        std::string::npos);
}

TEST_CASE("predictions are shares of all elements, by role", "[present]") {
  ExperimentSummary predicted = summary();
  const auto entry = [](std::string tensor, std::string role, std::int64_t elements, double share) {
    return UnderflowPrediction{.arm = "fp16_mixed",
                               .tensor = std::move(tensor),
                               .role = std::move(role),
                               .elements = elements,
                               .predicted = share,
                               .counted = share / 2};
  };
  predicted.predictions = {entry("logits", "activation_gradient", 100, 0.5),
                           entry("fc", "weight_gradient", 10, 0.25),
                           entry("hidden", "activation_gradient", 300, 0.25)};
  const std::string table = to_table(experiment(), predicted);
  CHECK(table.find("predicted from the histograms of fp32 / counted") != std::string::npos);
  CHECK(table.find("\n  arm          nearest the loss: logits  activation gradients  weight gradients\n"
                   "  fp16_mixed              50.0 / 25.0 %         31.2 / 15.6 %     25.0 / 12.5 %\n") !=
        std::string::npos);
  const Json json = to_json(experiment(), predicted)["predictions"];
  REQUIRE(json.size() == 3);
  CHECK(json[1]["tensor"] == "fc");
  CHECK(json[1]["predicted"] == 0.25);
  CHECK(json[1]["counted"] == 0.125);
}

std::vector<AccumulationRow> sums() {
  return {{.terms = "sums", .model = "fp16", .count = 4, .relative_error = 0.0},
          {.terms = "sums", .model = "fp32", .count = 4, .relative_error = 3.1e-4},
          {.terms = "sums", .model = "fp16", .count = 16, .overflowed = 1},
          {.terms = "sums", .model = "fp32", .count = 16, .relative_error = 0.5, .stagnated = 0.25},
          {.terms = "products", .model = "fp16", .count = 8, .relative_error = 0.25}};
}

TEST_CASE("accumulation has a table per kind of terms: models by lengths", "[present]") {
  Experiment experiment_of_sums = experiment();
  experiment_of_sums.accumulation = sums;
  const std::string table = to_table(experiment_of_sums, summary());
  CHECK(table.find("\n  sums     K=4        K=16\n"
                   "  fp16       0     - o100%\n"
                   "  fp32   3e-04  5e-01 s25%\n") != std::string::npos);
  CHECK(table.find("\n  products     K=8\n  fp16       2e-01\n") != std::string::npos);
  const Json json = to_json(experiment_of_sums, summary())["accumulation"];
  REQUIRE(json.size() == 5);
  CHECK(json[2]["relative_error"].is_null());
  CHECK(json[2]["overflowed"] == 1.0);
  CHECK(json[3]["stagnated"] == 0.25);
}

TEST_CASE("a report says what all-reduces lost, and that no scaler sees it", "[present]") {
  ExperimentSummary with_ranks = summary();
  CHECK(to_table(experiment(), with_ranks).find("all-reduces") == std::string::npos);
  CHECK_FALSE(to_json(experiment(), with_ranks)["arms"][1].contains("all_reduce"));
  with_ranks.arms[1].all_reduce = {.ranks = 512, .stagnated = 0.1234, .flushed = 0, .stagnated_steps = 0};
  std::string text = to_table(experiment(), with_ranks);
  CHECK(text.find("fp16_mixed: 512 ranks; adds that stagnated 12 %, addends flushed 0 %") !=
        std::string::npos);
  CHECK(text.find("no loss scaler sees") == std::string::npos);
  with_ranks.arms[1].all_reduce->stagnated_steps = 0.5;
  text = to_table(experiment(), with_ranks);
  CHECK(text.find("no loss scaler sees") != std::string::npos);
  CHECK(to_json(experiment(), with_ranks)["arms"][1]["all_reduce"]["ranks"] == 512);
}

}  // namespace
}  // namespace halfscope::present_test
