// Files of a run that grow or break off: how much is written, and what resuming makes of them.
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <halfscope/io/detail/posix_file.hpp>
#include <halfscope/io/folder_lock.hpp>

#include "tests/sim/small_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::run_records_test {
namespace {

namespace fs = std::filesystem;

/// Bytes that a run of `steps` writes.
double cost_of(std::int64_t steps) {
  const TemporaryFolder temporary;
  TrainConfig config = small_config();
  config.steps = steps;
  config.observe_every = 1;
  config.evaluation.every = 0;
  config.checkpoint_every = 10;
  const std::uint64_t before = bytes_written();
  run_in(temporary.path(), config);
  return static_cast<double>(bytes_written() - before);
}

TEST_CASE("the bytes that a run writes grow linearly with its steps", "[run]") {
  const double at_40 = cost_of(40), at_80 = cost_of(80), at_160 = cost_of(160);
  INFO(fmt::format("{} bytes for 40 steps, {} for 80, {} for 160", at_40, at_80, at_160));
  CHECK((at_160 - at_80) / (at_80 - at_40) == Approx(2).epsilon(0.03));
}

TEST_CASE("records are on the disk before their checkpoint where many wait", "[run]") {
  const SmallRun run;
  RecordLog records(run.temporary.path());
  records.add({.metrics = "{}\n", .histograms = std::string(2 << 20, ' ') + "\n"});
  CHECK(fs::file_size(run.temporary / "histograms.jsonl") == (2 << 20) + 1);
  CHECK_FALSE(fs::exists(run.temporary / "metrics.jsonl"));
}

TEST_CASE("records newer than the checkpoint are cut off at whatever byte they end", "[run]") {
  const SmallRun whole;
  whole.train();
  const Records expected = records_of(whole.folder);
  for (const std::size_t more : {1u, 2u, 100u, 5000u}) {
    INFO(more << " bytes");
    const SmallRun run;
    run.kill_at(15);  // after the checkpoint of step 14
    for (const char* name : {"metrics", "histograms"}) {
      const auto path = run / fmt::format("{}.jsonl", name).c_str();
      const std::string before = read_file(path);
      CHECK(before == expected.at(name).substr(0, before.size()));
      write_file(path, expected.at(name).substr(0, before.size() + more));
    }
    run.train();
    CHECK(records_of(run.folder) == expected);
  }
}

TEST_CASE("a run killed before its first checkpoint starts again, whatever records it left", "[run]") {
  const SmallRun whole, run;
  whole.train();
  run.kill_at(3);
  write_file(run / "metrics.jsonl", "{\"step\":1}\n{\"st");
  run.train();
  CHECK(records_of(run.folder) == records_of(whole.folder));
}

TEST_CASE("a stopped run has a checkpoint of its last step, and ends as an unbroken one", "[run]") {
  const SmallRun whole;
  whole.train();
  for (const std::int64_t stop : {1, 7, 20, 29}) {
    INFO("stopped at step " << stop);
    const SmallRun run;
    std::int64_t step = 0;
    const auto count = [&](const StepRecord& record) { step = record.step; };
    CHECK(run.train(count, [&] { return step == stop; }) == RunEnd::stopped);
    CHECK(run.status() == fmt::format("STOPPED after step {}: terminated, resumable\n", stop));
    CHECK(read_safetensors(run / checkpoint_file).metadata.at("step") == std::to_string(stop));
    CHECK_FALSE(fs::exists(run / "summary.json"));
    CHECK(run.train() == RunEnd::done);
    CHECK(records_of(run.folder) == records_of(whole.folder));
  }
  const SmallRun last;  // a request in the last step finds the run done
  std::int64_t step = 0;
  const auto count = [&](const StepRecord& record) { step = record.step; };
  CHECK(last.train(count, [&] { return step == small_config().steps; }) == RunEnd::done);
  CHECK(last.status() == "DONE\n");
}

TEST_CASE("a checkpoint without its config is not continued", "[run]") {
  const SmallRun run;
  run.kill_at(8);
  fs::remove(run / "config.json");
  CHECK(run.folder.exists());
  check_says(message_of<InvalidArgument>([&] { run.train(); }),
             {run.folder.path().string(), "config.json", "missing", "remove the run's folder"});
}

TEST_CASE("a run whose summary is gone is not done, whatever its status says", "[run]") {
  const SmallRun run;
  run.train();
  const Json first = read_json(run / "summary.json");
  fs::remove(run / "summary.json");
  CHECK_FALSE(run.folder.is_done());
  run.train();
  CHECK(run.folder.is_done());
  const Json second = read_json(run / "summary.json");
  for (const char* key : {"metric", "test_loss", "train_loss", "initial_loss", "gradients", "steps"})
    CHECK(first[key] == second[key]);
}

TEST_CASE("a run's summary has the loss of the model before its first update", "[run]") {
  const SmallRun run;
  run.kill_at(8);
  run.train();
  const std::string metrics = read_file(run / "metrics.jsonl");
  const Json first = parse_json(metrics.substr(0, metrics.find('\n')), "metrics.jsonl");
  const Json summary = read_json(run / "summary.json");
  CHECK(summary["initial_loss"] == first["loss"]);
  CHECK(summary["initial_metric"].is_null());  // an accuracy is no function of the loss
}

TEST_CASE("environment.json tells by whom a run was begun and continued", "[run]") {
  const SmallRun run;
  run.kill_at(8);
  const std::string ours = read_file(run / "environment.json");
  run.kill_at(15);
  CHECK(read_file(run / "environment.json") == ours);  // the same program goes on
  Json other = read_json(run / "environment.json");
  other["git_revision"] = "0123456789ab";
  write_file(run / "environment.json", to_text(other));
  run.kill_at(22);
  run.train();
  const Json environment = read_json(run / "environment.json");
  CHECK(environment["git_revision"] == "0123456789ab");
  REQUIRE(environment["continued"].size() == 1);
  CHECK(environment["continued"][0]["from_step"] == 15);
  CHECK(environment["continued"][0]["git_revision"] == Json::parse(ours)["git_revision"]);
}

TEST_CASE("a folder whose run is being trained is refused to others, and free afterwards", "[run]") {
  const SmallRun whole, run;
  whole.train();
  std::string message;
  run.train([&](const StepRecord& record) {
    if (record.step == 9) message = message_of<RuntimeFailure>([&] { run.train(); });
  });
  check_says(message, {run.folder.path().string(), fmt::format("process {} on ", ::getpid()), "--resume"});
  CHECK(records_of(run.folder) == records_of(whole.folder));
  CHECK(run.status() == "DONE\n");
  CHECK_FALSE(fs::exists(run / "run.lock"));
  write_file(run / "lock", "process 1 on a host, as an earlier version left it\n");
  fs::remove(run / "summary.json");
  CHECK(run.train() == RunEnd::done);
}

TEST_CASE("a run whose lock was taken over writes nothing more", "[run]") {
  const SmallRun run;
  const std::string message = message_of<LockLost>([&] {
    run.train([&](const StepRecord& record) {
      if (record.step == 9) fs::rename(run / "run.lock", run / "taken");
    });
  });
  check_says(message, {run.folder.path().string(), "taken over", "--resume"});
  CHECK(run.status() == "RUNNING\n");
  const Records records = records_of(run.folder);
  CHECK(records.at("metrics").find("\"step\":7,") != std::string::npos);
  CHECK(records.at("metrics").find("\"step\":8,") == std::string::npos);
}

}  // namespace
}  // namespace halfscope::run_records_test
