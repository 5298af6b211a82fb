// Runs and their folders: the same bytes for any number of threads, after any interruption.
#include "sim/train/run.hpp"

#include <nlohmann/json.hpp>

#include <halfscope/core/isa.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/safetensors/safetensors.hpp>

#include <algorithm>

#include "sim/train/trainer.hpp"
#include "tests/sim/planted_dataset.hpp"
#include "tests/sim/small_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::run_test {
namespace {

const SmallDataset& dataset = small_dataset;

TEST_CASE("the same config gives the same bytes, for any thread count and instruction set", "[run]") {
  const TemporaryFolder temporary;
  const Records expected = run_in(temporary.path() / "one", small_config());
  CHECK(run_in(temporary.path() / "again", small_config()) == expected);
  const Records two_threads =
      with_threads(2, [&] { return run_in(temporary.path() / "two", small_config()); });
  CHECK(two_threads == expected);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(name_of(isa));
    CHECK(run_in(temporary.path() / std::string(name_of(isa)), small_config()) == expected);
  }
  TrainConfig other = small_config();
  other.seed = 1;
  CHECK(run_in(temporary.path() / "other", other) != expected);
}

TEST_CASE("every order of products trains, and gives the same bytes for any thread count", "[run]") {
  const TemporaryFolder temporary;
  Records previous;
  for (const char* accumulate : {"tensor_core(hopper)", "fp16_sequential"}) {
    INFO(accumulate);
    TrainConfig config = small_config();
    config.learning_rate = 3e-3;
    config.operations.order = accumulate;
    config.steps = 10;
    const Records one_thread = run_in(temporary.path() / accumulate / "one", config);
    const Records two_threads =
        with_threads(2, [&] { return run_in(temporary.path() / accumulate / "two", config); });
    CHECK(two_threads == one_thread);
    CHECK(one_thread != previous);
    previous = one_thread;
    Trainer trainer(config, dataset);
    const float first_loss = trainer.step().loss;
    for (int i = 1; i < 25; ++i) (void)trainer.step();
    CHECK(trainer.weights_finite());
    CHECK(trainer.evaluate().loss < 0.5f * first_loss);
  }
}

TEST_CASE("a run that was stopped at any step ends with the bytes of an unbroken one", "[run]") {
  const TemporaryFolder temporary;
  const TrainConfig config = small_config();
  const Records expected = run_in(temporary.path() / "whole", config);
  for (const std::int64_t stop : {1, 7, 8, 20, 30}) {
    INFO("stopped at step " << stop);
    const RunFolder folder(temporary.path() / std::to_string(stop), {"experiment", "arm", 0});
    CHECK_THROWS_AS(run_training(parsed(config), dataset, folder, killed_at(stop)), Killed);
    CHECK_FALSE(folder.is_done());
    run_training(parsed(config), dataset, folder, ignore);
    CHECK(folder.is_done());
    CHECK(records_of(folder) == expected);
  }
}

/// The NaNs in the tensors of a run's last checkpoint.
std::int64_t nans_in(const RunFolder& folder) {
  std::int64_t nans = 0;
  const SafetensorsFile file = read_safetensors(folder.path() / "checkpoint/state.safetensors");
  for (const NamedArray& tensor : file.tensors)
    nans += std::ranges::count_if(tensor.array.values(), [](float x) { return x != x; });
  return nans;
}

TEST_CASE("a run whose state holds NaNs ends with the bytes of an unbroken one", "[run]") {
  const TemporaryFolder temporary;
  const PlantedDataset planted{3, 1e30f};  // its step is skipped; running averages keep its NaNs
  TrainConfig config = small_config();
  config.checkpoint_every = 1;
  const RunFolder whole(temporary.path() / "whole", {"experiment", "arm", 0});
  run_training(parsed(config), planted, whole, ignore);
  const RunFolder broken(temporary.path() / "broken", {"experiment", "arm", 0});
  const auto seed = static_cast<std::uint64_t>(config.seed);
  const std::int64_t stop = planted.first_step(config.batch, seed) + 1;
  REQUIRE(stop < config.steps);
  CHECK_THROWS_AS(run_training(parsed(config), planted, broken, killed_at(stop)), Killed);
  CHECK(nans_in(broken) > 0);
  run_training(parsed(config), planted, broken, ignore);
  CHECK(records_of(broken) == records_of(whole));
}

TEST_CASE("a resumed summary says what an unbroken one says", "[run]") {
  const TemporaryFolder temporary;
  const TrainConfig config = small_config();
  const RunFolder whole(temporary.path() / "whole", {"experiment", "arm", 0});
  run_training(parsed(config), dataset, whole, ignore);
  const RunFolder broken(temporary.path() / "broken", {"experiment", "arm", 0});
  CHECK_THROWS_AS(run_training(parsed(config), dataset, broken, killed_at(30)), Killed);
  run_training(parsed(config), dataset, broken, ignore);
  Json first = read_json(whole.path() / "summary.json"), second = read_json(broken.path() / "summary.json");
  for (const char* timing : {"seconds", "seconds_per_step"}) {
    first.erase(timing);
    second.erase(timing);
  }
  CHECK(first == second);
  CHECK(first["metric"].get<double>() > 90);
}

TEST_CASE("divergence is recorded, not thrown, and survives resuming", "[run]") {
  const TemporaryFolder temporary;
  TrainConfig config = small_config();
  config.policy = "fp16_pure";
  config.loss_scale = "1024";
  const RunFolder folder(temporary.path(), {"experiment", "arm", 0});
  run_training(parsed(config), dataset, folder, ignore);
  const Json summary = read_json(folder.path() / "summary.json");
  CHECK(summary["diverged"] == true);
  CHECK(summary["metric"].is_null());
  CHECK(summary["diverged_step"].get<int>() <= 2);
  std::filesystem::remove(folder.path() / "summary.json");
  write_file(folder.path() / "status", "RUNNING\n");
  run_training(parsed(config), dataset, folder, ignore);
  CHECK(read_json(folder.path() / "summary.json")["diverged_step"] == summary["diverged_step"]);
}

TEST_CASE("settings that do not fit the data set are found by a check that writes nothing", "[run]") {
  const auto refusal = [](const TrainConfig& config) {
    return message_of<InvalidArgument>([&] { check_training(parsed(config), dataset); });
  };
  check_training(parsed(small_config()), dataset);
  TrainConfig config = small_config();
  config.batch = 100'000;
  check_says(refusal(config), {"batch size 100000"});
  config = small_config();
  config.model = "lstm_lm";
  check_says(refusal(config), {"lstm_lm", "texts"});
  config.model = "unet";  // its layers take the images, its loss not their labels
  check_says(refusal(config), {"unet", "label for each pixel"});
}

TEST_CASE("a setting that is left out is at its default when a run is continued", "[run]") {
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path(), {"experiment", "arm", 0});
  TrainConfig smoothed = small_config();
  smoothed.model_options["label_smoothing"] = 0.1;
  folder.begin(parsed(smoothed), 0);
  folder.check_same(parsed(smoothed));
  check_says(message_of<InvalidArgument>([&] { folder.check_same(parsed(small_config())); }),
             {"label_smoothing = 0.1", "0.0 is asked for"});
  folder.begin(parsed(small_config()), 0);
  folder.check_same(parsed(small_config()));
  check_says(message_of<InvalidArgument>([&] { folder.check_same(parsed(smoothed)); }),
             {"label_smoothing = 0.0", "0.1 is asked for"});
}

TEST_CASE("another config, another version or a torn file is not continued", "[run]") {
  const TemporaryFolder temporary;
  TrainConfig config = small_config();
  const RunFolder folder(temporary.path(), {"experiment", "arm", 0});
  CHECK_THROWS_AS(run_training(parsed(config), dataset, folder, killed_at(8)), Killed);
  config.steps = 31;
  check_says(message_of<InvalidArgument>([&] { run_training(parsed(config), dataset, folder, ignore); }),
             {"config.json", "steps = 30", "31"});
  config.steps = 30;
  const std::string config_text = read_file(folder.path() / "config.json");
  Json stored = read_json(folder.path() / "config.json");
  stored["format_version"] = 99;
  write_file(folder.path() / "config.json", to_text(stored));
  check_says(message_of<InvalidArgument>([&] { run_training(parsed(config), dataset, folder, ignore); }),
             {"results format 99", "reads format 1"});
  write_file(folder.path() / "config.json", config_text);
  write_file(folder.path() / "metrics.jsonl", "");
  check_says(message_of<InvalidArgument>([&] { run_training(parsed(config), dataset, folder, ignore); }),
             {"metrics.jsonl", "shorter"});
}

}  // namespace
}  // namespace halfscope::run_test
