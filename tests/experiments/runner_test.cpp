// Runs of a small experiment: what is planned, what is written, what is resumed, and what is refused.
#include "experiments/runner/runner.hpp"

#include <nlohmann/json.hpp>

#include <halfscope/core/random.hpp>
#include <halfscope/io/file.hpp>

#include "experiments/runner/present.hpp"
#include "experiments/runner/summarise.hpp"
#include "experiments/runner/verdict_text.hpp"
#include "tests/experiments/synthetic_runs.hpp"
#include "tests/sim/idx_files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope {
namespace {

namespace fs = std::filesystem;

/// Four idx files of 8x8 images in `folder`/data: noise, with labels in turn.
void put_images(const TemporaryFolder& folder) {
  for (const auto& [split, count] : {std::pair{"train", 24}, {"t10k", 8}}) {
    std::string pixels, labels;
    for (int i = 0; i < count; ++i) {
      const RandomStream noise{static_cast<std::uint64_t>(i), 0, 0};
      labels += static_cast<char>(i % 4);
      for (std::uint64_t p = 0; p < 64; ++p) pixels += static_cast<char>(noise.bits(p) >> 24);
    }
    const auto images = static_cast<std::uint32_t>(count);
    folder.put(fmt::format("data/{}-images-idx3-ubyte", split), idx_bytes({images, 8, 8}, pixels));
    folder.put(fmt::format("data/{}-labels-idx1-ubyte", split), idx_bytes({images}, labels));
  }
}

std::string verdict(const ExperimentSummary& summary) {
  return against_baseline(summary, "fp16_mixed", "fp32");
}

Experiment tiny() {
  return {.name = "tiny",
          .summary = "a small one",
          .paper = "Section 0",
          .settings = {{"steps", "6"}, {"batch", "4"}, {"checkpoint_every", "2"}, {"observe_every", "3"}},
          .full_settings = {{"steps", "3"}},
          .varied = "policy",
          .arms = {{"fp32", "", {{"policy", "fp32"}}},
                   {"fp16_mixed",
                    "",
                    {{"policy", "fp16_mixed"}, {"loss_scale", "1024"}},
                    {{"loss_scale", "512"}}}},
          .quick_arms = {"fp16_mixed"},
          .full_arms = {"fp16_mixed"},
          .verdict = verdict};
}

/// A folder with images and room for results.
struct Place {
  TemporaryFolder folder;
  fs::path out = folder / "out";

  Place() { put_images(folder); }

  [[nodiscard]] RunRequest request(std::vector<std::string> arms = {}, std::int64_t seeds = 1) const {
    return {.arms = std::move(arms),
            .seeds = seeds,
            .out = out,
            .settings = {{"data", (folder / "data").string()}}};
  }
  [[nodiscard]] fs::path run(const std::string& arm, int seed = 0) const {
    return out / "tiny" / arm / fmt::format("seed{}", seed);
  }
  [[nodiscard]] Json config(const std::string& arm) const { return read_json(run(arm) / "config.json"); }
  [[nodiscard]] std::string status(const std::string& arm, int seed = 0) const {
    return read_file(run(arm, seed) / "status");
  }
};

/// The message of a request that is refused before anything is written.
std::string refusal(const Place& place, const RunRequest& request) {
  std::string message = message_of<InvalidArgument>([&] { run_experiment(tiny(), request); });
  CHECK_FALSE(fs::exists(place.out));
  return message;
}

TEST_CASE("every arm and seed is trained, and the arms are summarised", "[runner]") {
  const Place place;
  run_experiment(tiny(), place.request({}, 2));
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
    run_experiment(tiny(), request);
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
  run_experiment(tiny(), full);
  CHECK(place.config("fp16_mixed")["steps"] == 3);
  CHECK(place.config("fp16_mixed")["loss_scale"] == "512");
  fs::remove_all(place.out);
  RunRequest smoke = place.request({"fp32"});
  smoke.size = RunSize::smoke;
  smoke.settings.emplace_back("batch", "8");
  run_experiment(tiny(), smoke);
  CHECK(place.config("fp32")["steps"] == 4);
  CHECK(place.config("fp32")["batch"] == 8);
}

TEST_CASE("results that are there are kept unless they are to be resumed", "[runner]") {
  const Place place;
  run_experiment(tiny(), place.request({"fp32"}));
  const std::string before = read_file(place.run("fp32") / "summary.json");
  check_says(message_of<InvalidArgument>([&] { run_experiment(tiny(), place.request()); }),
             {"fp32", "seed0", "--resume"});
  CHECK_FALSE(fs::exists(place.run("fp16_mixed")));
  RunRequest again = place.request();
  again.resume = true;
  run_experiment(tiny(), again);
  CHECK(read_file(place.run("fp32") / "summary.json") == before);  // its times too
  CHECK(place.status("fp16_mixed") == "DONE\n");
  CHECK(read_json(place.out / "tiny/summary.json")["arms"].size() == 2);
}

TEST_CASE("a run that was stopped is continued from its checkpoint", "[runner]") {
  const Place place;
  run_experiment(tiny(), place.request({"fp32"}));
  const fs::path run = place.run("fp32");
  const std::string metrics = read_file(run / "metrics.jsonl");
  // As a kill after the last checkpoint leaves it, with a record more than the checkpoint knows of.
  fs::remove(run / "summary.json");
  write_file(run / "status", "RUNNING\n");
  write_file(run / "metrics.jsonl", metrics + "{\"step\":7}\n");
  RunRequest again = place.request({"fp32"});
  again.resume = true;
  run_experiment(tiny(), again);
  CHECK(place.status("fp32") == "DONE\n");
  CHECK(read_json(run / "summary.json")["seconds_per_step"].is_null());  // no step was left
}

TEST_CASE("a run that would differ from what is there is refused before any other is trained", "[runner]") {
  const Place place;
  run_experiment(tiny(), place.request({"fp16_mixed"}));
  RunRequest again = place.request();  // FP32 is first
  again.resume = true;
  again.settings.emplace_back("learning_rate", "0.5");
  check_says(message_of<InvalidArgument>([&] { run_experiment(tiny(), again); }),
             {"fp16_mixed", "config.json", "learning_rate", "another --out"});
  CHECK_FALSE(fs::exists(place.run("fp32")));
}

TEST_CASE("a run that fails says why, and leaves those before it done", "[runner]") {
  const Place place;
  Experiment failing = tiny();
  failing.arms[1].settings = {{"policy", "fp16_mixed"},
                              {"loss_scale", "deepspeed"},
                              {"initial_scale", "1e30"},
                              {"min_scale", "1e30"}};
  const auto run = [&](const RunRequest& request) {
    return message_of<RuntimeFailure>([&] { run_experiment(failing, request); });
  };
  const std::string reason = run(place.request());
  CHECK(reason.find("loss scale is at its minimum") != std::string::npos);
  CHECK(place.status("fp32") == "DONE\n");
  CHECK(place.status("fp16_mixed") == "FAILED: " + reason + "\n");
  CHECK_FALSE(fs::exists(place.run("fp16_mixed") / "summary.json"));
  CHECK_FALSE(fs::exists(place.out / "tiny/summary.json"));
  RunRequest again = place.request();
  again.resume = true;
  CHECK(run(again) == reason);
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
  RunRequest fine = place.request({"fp32"});
  fine.settings.emplace_back("policy", "fp32");  // the arm's own
  run_experiment(tiny(), fine);
  CHECK(place.status("fp32") == "DONE\n");
}

TEST_CASE("a run is repeated from its config.json", "[runner]") {
  const Place place;
  run_experiment(tiny(), place.request({"fp16_mixed"}, 2));
  RunRequest repeat{.out = place.folder / "again", .config = place.run("fp16_mixed", 1) / "config.json"};
  run_experiment(tiny(), repeat);
  const fs::path again = place.folder / "again/tiny/fp16_mixed";
  CHECK(read_file(again / "seed1/metrics.jsonl") == read_file(place.run("fp16_mixed", 1) / "metrics.jsonl"));
  CHECK_FALSE(fs::exists(again / "seed0"));
  CHECK_FALSE(fs::exists(place.folder / "again/tiny/fp32"));
  repeat.arms = {"fp32"};
  check_says(message_of<InvalidArgument>([&] { run_experiment(tiny(), repeat); }),
             {"--config", "arm fp16_mixed", "not of fp32"});
  Experiment other = tiny();
  other.name = "other";
  repeat.arms = {};
  check_says(message_of<InvalidArgument>([&] { run_experiment(other, repeat); }),
             {"--config", "experiment tiny", "not of other"});
}

}  // namespace
}  // namespace halfscope
