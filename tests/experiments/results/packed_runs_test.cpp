// Packed runs: what folders of the same runs say, and damaged files.
#include "experiments/results/packed_runs.hpp"

#include <zlib.h>

#include <nlohmann/json.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/results/summary_json.hpp"
#include "tests/experiments/synthetic_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::packed_runs_test {
namespace {

Experiment experiment() {
  return {.name = "tiny",
          .varied = {"policy"},
          .predicts_from = "one",
          .arms = {{"one", "", {}}, {"two", "", {}}}};
}

Json histogram_of_step(int step) {
  return {{"step", step},
          {"tensor", "x"},
          {"role", "weight_gradient"},
          {"scale", 1.0},
          {"first_exponent", -30},
          {"counts", {8}},
          {"pow2", {8}},
          {"top", {0}},
          {"subnormal_carry", {0}},
          {"zeros", 2},
          {"negative_zeros", 0},
          {"infinities", 0},
          {"nans", 0}};
}

const Json first_step{
    {"step", 1},
    {"tensors",
     {{{"tensor", "x"}, {"role", "weight_gradient"}, {"scale", 1.0}, {"elements", 10}, {"flushed", 4}}}}};

Json config_of(const std::string& policy) {
  return {{"format_version", 1}, {"policy", policy}, {"steps", 6}};
}

Json summary_of(int seed, double metric) {
  return {{"format_version", 1}, {"seed", seed},      {"diverged", false}, {"diverged_step", nullptr},
          {"metric", metric},    {"train_loss", 1.5}, {"skipped", seed}};
}

struct Run {
  std::string arm;
  int seed;
  double metric;
  std::string policy;
};
const std::vector<Run> runs{{"one", 0, 60, "fp32"},
                            {"one", 2, 64, "fp32"},
                            {"two", 0, 50, "fp16_mixed"},
                            {"two", 2, 70, "fp16_mixed"}};

void put_folders(const TemporaryFolder& folder) {
  for (const Run& run : runs) {
    const std::string path = fmt::format("{}/seed{}/", run.arm, run.seed);
    folder.put(path + "summary.json", summary_of(run.seed, run.metric).dump());
    folder.put(path + "config.json", config_of(run.policy).dump());
    folder.put(path + "metrics.jsonl", first_step.dump() + "\n");
    if (run.arm == "one")
      folder.put(path + "histograms.jsonl",
                 histogram_of_step(1).dump() + "\n" + histogram_of_step(2).dump() + "\n");
  }
}

Json line_of(const Run& run) {
  return {{"arm", run.arm},
          {"seed", run.seed},
          {"config", {{"policy", run.policy}}},
          {"summary", summary_of(run.seed, run.metric)},
          {"first_step", first_step}};
}

const std::string shared_line = "{\"config\":{\"format_version\":1,\"steps\":6}}\n";

void put_zipped(const TemporaryFolder& folder, const std::string& text) {
  const gzFile file = gzopen((folder / "histograms.jsonl.gz").c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

void put_packed(const TemporaryFolder& folder) {
  std::string lines = shared_line, histograms;
  for (const Run& run : runs) {
    lines += line_of(run).dump() + "\n";
    if (run.arm != "one") continue;
    for (const int step : {1, 2}) {
      Json record{{"arm", run.arm}, {"seed", run.seed}};
      record.update(histogram_of_step(step));
      histograms += record.dump() + "\n";
    }
  }
  folder.put("runs.jsonl", lines);
  put_zipped(folder, histograms);
}

TEST_CASE("packed runs say what folders of the same runs say", "[packed_runs]") {
  const TemporaryFolder folders, packed;
  put_folders(folders);
  put_packed(packed);
  CHECK((has_packed_runs(packed.path()) && !has_packed_runs(folders.path())));
  const ExperimentSummary expected = analyse(experiment(), folders.path()),
                          found = analyse(experiment(), packed.path());
  CHECK(to_json(experiment(), found) == to_json(experiment(), expected));
  CHECK(found.arms.size() == 2);
  CHECK(found.find("two")->values == std::vector<std::optional<double>>{50.0, 70.0});
  const auto predictions =
      std::find_if(found.findings.begin(), found.findings.end(),
                   [](const AnalysisResult& finding) { return finding.analysis == "predictions"; });
  REQUIRE(predictions != found.findings.end());
  CHECK(predictions->values.at(0).at("elements") == 20);
  CHECK(predictions->values.at(0).at("counted") == 0.4);
}

std::string refusal(const std::string& lines) {
  const TemporaryFolder folder;
  folder.put("runs.jsonl", lines);
  return message_of<InvalidArgument>([&] { (void)read_packed_runs(folder.path()); });
}

TEST_CASE("a damaged line of packed runs is told with file and line", "[packed_runs]") {
  const std::string good = line_of(runs[0]).dump() + "\n";
  const auto without = [](const char* key) {
    Json line = line_of(runs[0]);
    line.erase(key);
    return line.dump() + "\n";
  };
  check_says(refusal("{}\n"), {"runs.jsonl: line 1: ", "'config'"});
  check_says(refusal(shared_line + "{\"arm\"\n"), {"runs.jsonl: line 2"});
  for (const char* key : {"arm", "seed", "config", "summary"})
    check_says(refusal(shared_line + without(key)), {"runs.jsonl: line 2: ", std::string("'") + key + "'"});
  Json wrong = line_of(runs[0]);
  wrong["summary"]["diverged"] = "no";
  check_says(refusal(shared_line + wrong.dump() + "\n"), {"runs.jsonl: line 2: ", "diverged is \"no\""});
  wrong = line_of(runs[0]);
  wrong["seed"] = "0";
  check_says(refusal(shared_line + wrong.dump() + "\n"), {"runs.jsonl: line 2: "});
  wrong = line_of(runs[0]);
  wrong["first_step"]["tensors"][0].erase("role");
  check_says(refusal(shared_line + wrong.dump() + "\n"), {"runs.jsonl: line 2: ", "'role'"});
  check_says(refusal(shared_line + good + good), {"runs.jsonl: line 3: ", "one seed 0", "ascend"});
  check_says(refusal(shared_line + good.substr(0, good.size() - 1)), {"runs.jsonl: ", "ends within a line"});
  check_says(refusal(""), {"runs.jsonl: ", "ends within a line"});
}

TEST_CASE("damaged histograms of packed runs are told with their file", "[packed_runs]") {
  const TemporaryFolder folder;
  put_packed(folder);
  const auto told = [&] {
    return message_of<InvalidArgument>([&] { (void)analyse(experiment(), folder.path()); });
  };
  const std::filesystem::path path = folder / "histograms.jsonl.gz";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 12);
  check_says(told(), {"histograms.jsonl.gz: "});
  put_zipped(folder, "{\"arm\":\"one\",\"seed\":0,\"step\":1}\n");
  check_says(told(), {"histograms.jsonl.gz: line 1: "});
  put_zipped(folder, "{\"arm\"\n");
  check_says(told(), {"histograms.jsonl.gz: line 1"});
}

}  // namespace
}  // namespace halfscope::packed_runs_test
