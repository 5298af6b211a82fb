// Runs of a small experiment: what is planned, what is written, what is resumed, and what is refused.
#include "experiments/run/run_experiments.hpp"

#include <nlohmann/json.hpp>

#include <halfscope/io/file.hpp>

#include "experiments/results/report_text.hpp"
#include "experiments/results/summarise.hpp"
#include "experiments/results/summary_json.hpp"
#include "tests/experiments/tiny_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::run_experiments_test {
namespace {

namespace fs = std::filesystem;

void train(const Experiment& experiment, const RunRequest& request) {
  CHECK(run_experiments({{experiment, request}}).failures.empty());
}

RunRequest resumed(RunRequest request) {
  request.resume = true;
  return request;
}

/// The message of a request that is refused before anything is written.
std::string refusal(const Place& place, const RunRequest& request) {
  std::string message = message_of<InvalidArgument>([&] { (void)run_experiments({{tiny(), request}}); });
  CHECK_FALSE(fs::exists(place.out));
  return message;
}

TEST_CASE("every arm and seed is trained, and the arms are summarised", "[runner]") {
  const Place place;
  train(tiny(), place.request({}, 2));
  for (const char* arm : {"fp32", "fp16_mixed"}) {
    for (const int seed : {0, 1}) {
      CHECK(place.status(arm, seed) == "DONE\n");
      const Json summary = read_json(place.run(arm, seed) / "summary.json");
      CHECK(summary["arm"] == arm);
      CHECK(summary["seed"] == seed);
      CHECK(summary["steps"] == 6);
    }
    CHECK(place.config(arm)["policy"] == arm);
    CHECK(place.config(arm)["experiment"] == "tiny");
  }
  CHECK(place.config("fp16_mixed")["loss_scale"] == "1024");
  const Json summary = read_json(place.out / "tiny/summary.json");
  CHECK(summary == to_json(tiny(), summarise(tiny(), place.out / "tiny")));
  CHECK(summary["arms"].size() == 2);
  CHECK(summary["arms"][0]["seeds"] == 2);
  CHECK_FALSE(summary["verdict"].get<std::string>().empty());
}

TEST_CASE("the number of seeds and the arms have defaults by size", "[runner]") {
  const auto runs = [](RunRequest request) {
    const Place place;
    request.out = place.out;
    request.settings = place.request().settings;
    request.settings.emplace_back("steps", "1");
    train(tiny(), request);
    std::vector<std::string> found;
    for (const Arm& arm : tiny().arms) {
      for (int seed = 0; seed < 4; ++seed) {
        if (fs::exists(place.run(arm.name, seed))) found.push_back(fmt::format("{}/{}", arm.name, seed));
      }
    }
    return found;
  };
  using Runs = std::vector<std::string>;
  CHECK(runs({.arms = {"fp32"}}) == Runs{"fp32/0", "fp32/1", "fp32/2"});
  CHECK(runs({.quick = true}) == Runs{"fp16_mixed/0"});
  CHECK(runs({.arms = {"fp32"}, .seeds = 2, .quick = true}) == Runs{"fp32/0", "fp32/1"});
  CHECK(runs({.seeds = 1, .size = RunSize::full}) == Runs{"fp16_mixed/0"});
  CHECK(runs({.seeds = 1}) == Runs{"fp32/0", "fp16_mixed/0"});
}

TEST_CASE("a size changes settings, and a request's own settings win", "[runner]") {
  const Place place;
  RunRequest full = place.request();
  full.size = RunSize::full;
  train(tiny(), full);
  CHECK(place.config("fp16_mixed")["steps"] == 3);
  CHECK(place.config("fp16_mixed")["loss_scale"] == "512");
  fs::remove_all(place.out);
  RunRequest smoke = place.request({"fp32"});
  smoke.size = RunSize::smoke;
  smoke.settings.emplace_back("batch", "8");
  train(tiny(), smoke);
  CHECK(place.config("fp32")["steps"] == 4);
  CHECK(place.config("fp32")["batch"] == 8);
}

TEST_CASE("results that are done are kept, others only where they are to be resumed", "[runner]") {
  const Place place;
  train(tiny(), place.request({"fp32"}));
  const std::string before = read_file(place.run("fp32") / "summary.json");
  for (const char* status : {"RUNNING", "FAILED: no memory", "STOPPED after step 2: terminated, resumable"}) {
    write_file(place.run("fp32") / "status", fmt::format("{}\n", status));
    check_says(message_of<InvalidArgument>([&] {
                 (void)run_experiments({{tiny(), place.request()}});
               }),
               {"fp32", "seed0", status, "--resume"});
    CHECK_FALSE(fs::exists(place.run("fp16_mixed")));
  }
  write_file(place.run("fp32") / "status", "DONE\n");
  train(tiny(), place.request());
  CHECK(read_file(place.run("fp32") / "summary.json") == before);  // its times too
  CHECK(place.status("fp16_mixed") == "DONE\n");
  CHECK(read_json(place.out / "tiny/summary.json")["arms"].size() == 2);
}

/// Where `finish_another` finds a finished run.
fs::path watched_arm;

/// Reads the results, and finishes a run as another process does before this one writes their summary.
ExperimentSummary summarise_then_finish_another(const Experiment& experiment, const fs::path& folder) {
  ExperimentSummary found = summarise(experiment, folder);
  if (fs::exists(watched_arm / "seed1")) return found;
  Json summary = read_json(watched_arm / "seed0/summary.json");
  summary["seed"] = 1;
  fs::create_directories(watched_arm / "seed1");
  write_file(watched_arm / "seed1/summary.json", to_text(summary));
  return found;
}

TEST_CASE("whoever writes the summary last has seen every run that is done", "[runner]") {
  const Place place;
  watched_arm = place.out / "tiny/fp32";
  const RunsOutcome outcome =
      run_experiments({{tiny(), place.request({"fp32"})}}, {}, summarise_then_finish_another);
  CHECK(outcome.failures.empty());
  CHECK(read_json(place.out / "tiny/summary.json")["arms"][0]["seeds"] == 2);
}

TEST_CASE("a run that was stopped is continued from its checkpoint", "[runner]") {
  const Place place;
  train(tiny(), place.request({"fp32"}));
  const fs::path run = place.run("fp32");
  const std::string metrics = read_file(run / "metrics.jsonl");
  // As a kill after the last checkpoint leaves it, with a record more than the checkpoint knows of.
  fs::remove(run / "summary.json");
  write_file(run / "status", "RUNNING\n");
  write_file(run / "metrics.jsonl", metrics + "{\"step\":7}\n");
  RunRequest again = place.request({"fp32"});
  again.resume = true;
  train(tiny(), again);
  CHECK(place.status("fp32") == "DONE\n");
  CHECK(read_json(run / "summary.json")["seconds_per_step"].is_null());  // no step was left
}

TEST_CASE("a run that would differ from what is there is refused before any other is trained", "[runner]") {
  const Place place;
  train(tiny(), place.request({"fp16_mixed"}));
  RunRequest again = place.request();  // FP32 is first
  again.resume = true;
  again.settings.emplace_back("learning_rate", "0.5");
  check_says(message_of<InvalidArgument>([&] {
               (void)run_experiments({{tiny(), again}});
             }),
             {"fp16_mixed", "config.json", "learning_rate", "another --out"});
  CHECK_FALSE(fs::exists(place.run("fp32")));
}

TEST_CASE("a run that fails says why and leaves the others alone", "[runner]") {
  const Place place;
  Experiment failing = tiny();
  failing.arms.insert(failing.arms.begin(), failing_arm());
  RunsOutcome outcome = run_experiments({{failing, place.request()}});
  REQUIRE(outcome.failures.size() == 1);
  const std::string line = outcome.failures[0], run = "tiny failing seed 0: ";
  REQUIRE(line.starts_with(run));
  check_says(line, {"loss scale is at its minimum"});
  CHECK(place.status("failing") == "FAILED: " + line.substr(run.size()) + "\n");
  CHECK_FALSE(fs::exists(place.run("failing") / "summary.json"));
  CHECK(place.status("fp32") == "DONE\n");
  CHECK(place.status("fp16_mixed") == "DONE\n");
  CHECK(outcome.summaries.front().arms.size() == 2);
  CHECK(read_json(place.out / "tiny/summary.json")["arms"].size() == 2);
  RunRequest again = place.request();
  again.resume = true;
  CHECK(run_experiments({{failing, again}}).failures == outcome.failures);
}

TEST_CASE("without a run that is done there is no summary", "[runner]") {
  const Place place;
  Experiment failing = tiny();
  failing.arms = {failing_arm()};
  const RunsOutcome outcome = run_experiments({{failing, place.request({}, 2)}});
  REQUIRE(outcome.failures.size() == 2);
  CHECK(outcome.failures[1].starts_with("tiny failing seed 1: "));
  CHECK(outcome.summaries.front().arms.empty());
  CHECK_FALSE(fs::exists(place.out / "tiny/summary.json"));
}

TEST_CASE("results that cannot be summarised are told beside the runs that failed", "[runner]") {
  const Place place;
  Experiment failing = tiny();
  failing.arms[0] = failing_arm();
  fs::create_directories(place.out / "tiny/summary.json");
  const RunsOutcome outcome = run_experiments({{failing, place.request()}});
  REQUIRE(outcome.failures.size() == 2);
  check_says(outcome.failures[1], {"summary.json", "folder"});
  CHECK(message_of<RuntimeFailure>([&] {
          (void)run_experiments({{tiny(), resumed(place.request({"fp16_mixed"}))}});
        }) == outcome.failures[1]);
}

TEST_CASE("an arm that is asked for twice is trained once", "[runner]") {
  const Place place;
  CHECK(plan_runs({{tiny(), place.request({"fp32", "fp16_mixed", "fp32"})}}).size() == 2);
}

TEST_CASE("a request that cannot be right writes nothing", "[runner]") {
  const Place place;
  check_says(refusal(place, place.request({"fp32", "fp15"})), {"arm of tiny", "fp15"});
  const auto with = [&](const std::string& key, const std::string& value) {
    RunRequest request = place.request();
    request.settings.emplace_back(key, value);
    return refusal(place, request);
  };
  check_says(with("seed", "3"), {"seed", "--seeds"});
  check_says(with("policy", "fp16_mixed"), {"policy", "arms of tiny differ in", "--arms"});
  check_says(with("stepz", "3"), {"stepz", "did you mean 'steps'"});
  check_says(with("steps", "-1"), {"steps"});
  check_says(with("data", place.folder / "nowhere"), {"nowhere"});
  Experiment wrong_at_last = tiny();
  wrong_at_last.arms[1].settings = {{"policy", "fp16_mixed"}, {"batch", "1000"}};
  check_says(message_of<InvalidArgument>([&] {
               (void)run_experiments({{wrong_at_last, place.request()}});
             }),
             {"1000"});
  CHECK_FALSE(fs::exists(place.out));
  RunRequest fine = place.request({"fp32"});
  fine.settings.emplace_back("policy", "fp32");  // the arm's own
  train(tiny(), fine);
  CHECK(place.status("fp32") == "DONE\n");
}

TEST_CASE("a run is repeated from its config.json", "[runner]") {
  const Place place;
  train(tiny(), place.request({"fp16_mixed"}, 2));
  RunRequest repeat{.out = place.folder / "again", .config = place.run("fp16_mixed", 1) / "config.json"};
  train(tiny(), repeat);
  const fs::path again = place.folder / "again/tiny/fp16_mixed";
  CHECK(read_file(again / "seed1/metrics.jsonl") == read_file(place.run("fp16_mixed", 1) / "metrics.jsonl"));
  CHECK_FALSE(fs::exists(again / "seed0"));
  CHECK_FALSE(fs::exists(place.folder / "again/tiny/fp32"));
  repeat.arms = {"fp32"};
  check_says(message_of<InvalidArgument>([&] {
               (void)run_experiments({{tiny(), repeat}});
             }),
             {"--config", "arm fp16_mixed", "not of fp32"});
  Experiment other = tiny();
  other.name = "other";
  repeat.arms = {};
  check_says(message_of<InvalidArgument>([&] {
               (void)run_experiments({{other, repeat}});
             }),
             {"--config", "experiment tiny", "not of other"});
}

}  // namespace
}  // namespace halfscope::run_experiments_test
