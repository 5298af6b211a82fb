// Summaries as JSON and as the table of the terminal, each from a summary made by hand.
#include "experiments/results/report_text.hpp"
#include "experiments/results/summary_json.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/sums_table.hpp"
#include "tests/experiments/summaries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::report_text_test {
namespace {

Experiment experiment() {
  return {.name = "tiny",
          .summary = "a small one",
          .paper = "Section 0: nothing.",
          .varied = {"policy"},
          .predicts_from = "fp32",
          .arms = {{"fp32", "", {}}, {"fp16_mixed", "", {}}},
          .verdict = {{.text = "Something."}}};
}

/// FP32 with an interval, FP16 with a seed that diverged.
ExperimentSummary summary() {
  return {.metric = {},
          .arms = {{.arm = "fp32",
                    .values = {65.0, 66.0},
                    .mean = 65.5,
                    .low = 59.147,
                    .high = 71.853,
                    .columns = columns_with({{"lost_updates", 0},
                                             {"flushed", 0},
                                             {"fp16_flushed", 0},
                                             {"skipped", 0},
                                             {"seconds_per_step", 0.0123}})},
                   {.arm = "fp16_mixed",
                    .values = {64.0, std::nullopt},
                    .mean = 64.0,
                    .diverged = 1,
                    .diverged_step = 9,
                    .columns = columns_with({{"flushed", 0.1234},
                                             {"fp16_flushed", 0.1234},
                                             {"skipped", 2.5},
                                             {"final_scale_log2", 12.5}})}}};
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
  CHECK_FALSE(json.contains("all_reduces"));
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
  Experiment comparing = experiment();
  comparing.verdict = {{.text = "{fp16_mixed | fp32}."}};
  CHECK(to_json(comparing, {.metric = {}, .arms = {}})["verdict"] == "No arms to compare were run.");
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

/// `summary` with the findings of `of`, whose folder is empty.
ExperimentSummary with_findings(const Experiment& of, ExperimentSummary summary) {
  const TemporaryFolder folder;
  add_findings(of, folder.path(), summary);
  return summary;
}

/// The cells of the line of a table that starts with `first`.
std::string line_of(const std::string& table, const std::string& first) {
  const std::size_t begin = table.find("\n  " + first);
  REQUIRE(begin != std::string::npos);
  return table.substr(begin + 1, table.find('\n', begin + 1) - begin - 1);
}

TEST_CASE("the paper's rows stand beside ours, those of no arm left out", "[present]") {
  Experiment ours = experiment();
  CHECK_FALSE(to_json(ours, with_findings(ours, summary())).contains("published"));
  ours.published = {{"Net", "fp32", "fp16_mixed", 56.77, 56.93},
                    {"Net of no paper", "fp32", "other"},
                    {"Net of no run", "no", "other", 1, 2}};
  const std::string table = to_table(ours, with_findings(ours, summary()));
  CHECK(table.find("Net               65.50  64.00       -1.50           -                    1.00         "
                   "56.77  56.93       "
                   "+0.16\n") != std::string::npos);
  CHECK(table.find("Net of no paper   65.50      -           -           -                    1.00           "
                   "  -      -           "
                   "-\n") != std::string::npos);
  CHECK(table.find("Net of no run") == std::string::npos);
  const Json rows = to_json(ours, with_findings(ours, summary()))["published"];
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] == Json{{"row", "Net"},
                        {"baseline", 65.5},
                        {"arm", 64.0},
                        {"spread", 1.0},
                        {"detectable", nullptr},
                        {"paper_baseline", 56.77},
                        {"paper_arm", 56.93}});
  CHECK(rows[2]["arm"].is_null());
}

TEST_CASE("scale and memory have columns where there is something to say", "[present]") {
  Experiment shown = experiment();
  shown.report.scale = Shown::shown;
  ExperimentSummary with_memory = summary();
  set_column(with_memory.arms[0], "peak_device_bytes", 700.0 * (1 << 20));
  set_column(with_memory.arms[1], "last_skipped_step", 30);
  set_column(with_memory.arms[1], "first_at_final_scale", 7);
  const std::string table = to_table(shown, with_memory);
  CHECK(line_of(table, "arm").ends_with(" ms/step  last skip  log2 final scale  first at it  peak MiB"));
  CHECK(line_of(table, "fp32").ends_with("    12.3          -                 -            -       700"));
  CHECK(
      line_of(table, "fp16_mixed").ends_with("       -         30              12.5            7         -"));
}

TEST_CASE("bytes of a step have a column where the experiment shows them and a run says them", "[present]") {
  Experiment shown = experiment();
  ExperimentSummary counted = summary();
  set_column(counted.arms[0], "peak_step_bytes", 1'234'567);
  CHECK(line_of(to_table(shown, counted), "arm").ends_with(" ms/step"));
  shown.report.memory = Shown::shown;
  CHECK(line_of(to_table(shown, summary()), "arm").ends_with(" ms/step"));
  const std::string table = to_table(shown, counted);
  CHECK(line_of(table, "arm").ends_with(" ms/step  step MB"));
  CHECK(line_of(table, "fp32").ends_with("    12.3     1.23"));
  CHECK(to_json(shown, counted).at("arms")[0].at("peak_step_bytes") == 1'234'567);
  CHECK_FALSE(to_json(shown, summary()).at("arms")[0].contains("peak_step_bytes"));
}

TEST_CASE("overflows are a line per arm that had any", "[present]") {
  ExperimentSummary overflowing = summary();
  CHECK(to_table(experiment(), with_findings(experiment(), overflowing)).find("overflows") ==
        std::string::npos);
  overflowing.arms[0].overflows = {"step 3: one"};
  overflowing.arms[1].overflows = {"step 4: two", "step 5: three", "step 6: four"};
  const std::string table = to_table(experiment(), with_findings(experiment(), overflowing));
  CHECK(table.find(
            "\n  overflows\n  fp32: step 3: one\n  fp16_mixed: step 4: two; 2 more steps overflowed\n") !=
        std::string::npos);
  overflowing.arms[0].overflows = {
      "step 3: conv1.weight (master weight) was first, in the update pass: 21 of 144 infinite or NaN"};
  std::istringstream narrow(to_table(experiment(), with_findings(experiment(), overflowing), {.width = 40}));
  for (std::string line; std::getline(narrow, line);) {
    INFO(line);
    CHECK(line.size() <= 40);
  }
}

std::vector<AccumulationRow> sums() {
  return {{.terms = "sums", .model = "fp16", .count = 4, .relative_error = 0.0},
          {.terms = "sums", .model = "fp32", .count = 4, .relative_error = 3.1e-4},
          {.terms = "sums", .model = "fp16", .count = 16, .overflowed = 1},
          {.terms = "sums", .model = "fp32", .count = 16, .relative_error = 0.5, .stagnated = 0.25},
          {.terms = "products", .model = "fp16", .count = 8, .relative_error = 0.25}};
}

TEST_CASE("accumulation has a table per kind of terms: models by lengths", "[present]") {
  ExperimentSummary of_sums = summary();
  of_sums.findings = {accumulation_finding(sums())};
  const std::string table = to_table(experiment(), of_sums);
  CHECK(table.find("\n  sums     K=4        K=16\n"
                   "  fp16       0     - o100%\n"
                   "  fp32   3e-04  5e-01 s25%\n") != std::string::npos);
  CHECK(table.find("\n  products     K=8\n  fp16       2e-01\n") != std::string::npos);
  const Json json = to_json(experiment(), of_sums)["accumulation"];
  REQUIRE(json.size() == 5);
  CHECK(json[2]["relative_error"].is_null());
  CHECK(json[2]["overflowed"] == 1.0);
  CHECK(json[3]["stagnated"] == 0.25);
}

TEST_CASE("a report says what all-reduces lost, and that no scaler sees it", "[present]") {
  ExperimentSummary with_ranks = summary();
  CHECK(to_table(experiment(), with_findings(experiment(), with_ranks)).find("all-reduces") ==
        std::string::npos);
  CHECK_FALSE(to_json(experiment(), with_ranks)["arms"][1].contains("all_reduce"));
  for (const auto& [key, value] : {std::pair{"ranks", 512.0}, {"stagnated", 0.1234}, {"flushed", 0.0}})
    set_column(with_ranks.arms[1], std::string("all_reduce.") + key, value);
  std::string text = to_table(experiment(), with_findings(experiment(), with_ranks));
  CHECK(text.find("fp16_mixed: 512 ranks; adds that stagnated 12 %, addends flushed 0 %") !=
        std::string::npos);
  CHECK(text.find("no loss scaler sees") == std::string::npos);
  set_column(with_ranks.arms[1], "all_reduce.stagnated_steps", 0.5);
  text = to_table(experiment(), with_findings(experiment(), with_ranks));
  CHECK(text.find("no loss scaler sees") != std::string::npos);
  CHECK(to_json(experiment(), with_ranks)["arms"][1]["all_reduce"]["ranks"] == 512);
}

}  // namespace
}  // namespace halfscope::report_text_test
