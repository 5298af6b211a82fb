// Runs that start from the weights of another: what they take over, and what is refused.
#include "sim/train/start_weights.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <halfscope/io/file.hpp>

#include "sim/train/trainer.hpp"
#include "tests/sim/small_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::start_weights_test {
namespace {

const Array& tensor(const SafetensorsFile& file, const std::string& name) {
  const auto found = std::ranges::find(file.tensors, name, &NamedArray::name);
  REQUIRE(found != file.tensors.end());
  return found->array;
}

TrainConfig with_seed(std::int64_t seed) {
  TrainConfig config = small_config();
  config.seed = seed;
  config.policy = "fp32";
  config.loss_scale = "none";
  return config;
}

bool same(const Array& a, const Array& b) {
  return std::ranges::equal(a.values(), b.values());
}

TEST_CASE("weights are taken over by their names, others stay", "[start]") {
  Trainer source(with_seed(1), small_dataset), own(with_seed(2), small_dataset);
  static_cast<void>(source.step());
  SafetensorsFile weights = source.checkpoint();
  const SafetensorsFile before = own.checkpoint();
  // As another program names them: one without "model.", and no last layer.
  std::erase_if(weights.tensors, [](const NamedArray& t) { return t.name.starts_with("model.fc2"); });
  for (NamedArray& named : weights.tensors)
    if (named.name == "model.fc1.bias") named.name = "fc1.bias";
  own.start_from(weights);
  const SafetensorsFile after = own.checkpoint();
  CHECK(same(tensor(after, "model.conv1.weight"), tensor(weights, "model.conv1.weight")));
  CHECK(same(tensor(after, "model.fc1.bias"), tensor(weights, "fc1.bias")));
  CHECK_FALSE(same(tensor(after, "model.conv1.weight"), tensor(before, "model.conv1.weight")));
  CHECK(same(tensor(after, "model.fc2.weight"), tensor(before, "model.fc2.weight")));
  CHECK(own.steps_done() == 0);
  for (const NamedArray& named : after.tensors)
    if (named.name.starts_with("optimizer.")) CHECK(same(named.array, tensor(before, named.name)));
}

TEST_CASE("a run without a master copy rounds what it starts from", "[start]") {
  TrainConfig config = with_seed(2);
  config.policy = "fp16_no_master";
  Trainer source(with_seed(1), small_dataset), own(config, small_dataset);
  own.start_from(source.checkpoint());
  const SafetensorsFile after = own.checkpoint(), weights = source.checkpoint();
  const Array &stored = tensor(after, "model.fc1.weight"), &exact = tensor(weights, "model.fc1.weight");
  CHECK_FALSE(same(stored, exact));
  for (std::size_t i = 0; i < stored.size(); ++i) {
    int exponent = 0;
    static_cast<void>(std::frexp(exact[i], &exponent));
    const float spacing = std::ldexp(1.0f, std::max(exponent - 11, -24));  // spacing of FP16 numbers
    REQUIRE(std::fmod(stored[i], spacing) == 0);
    REQUIRE(std::abs(stored[i] - exact[i]) <= spacing / 2);
  }
}

TEST_CASE("a run starts from a folder, from a file or from an arm beside it, and resumes from its own",
          "[start]") {
  const TemporaryFolder root;
  TrainConfig source = with_seed(3);
  source.steps = 5;
  const RunFolder first(root.path(), {"experiment", "first", 3});
  run_training(parsed(source), small_dataset, first, ignore);
  std::map<std::string, Records> records;
  for (const std::string& start :
       {first.path().string(), first.checkpoint_path().string(), std::string("arm:first"), std::string()}) {
    TrainConfig config = with_seed(3);
    config.learning_rate = 2e-3;
    config.start_from = start;
    const RunFolder folder(root.path(), {"experiment", fmt::format("arm{}", records.size()), 3});
    run_training(parsed(config), small_dataset, folder, ignore);
    records[start] = records_of(folder);
    CHECK(read_json(folder.path() / "config.json").at("start_from") == start);
    // Killed between two checkpoints, and before the first.
    for (const std::int64_t stop : {11, 3}) {
      std::filesystem::remove_all(folder.path());
      CHECK_THROWS_AS(run_training(parsed(config), small_dataset, folder, killed_at(stop)), Killed);
      run_training(parsed(config), small_dataset, folder, ignore);
      CHECK(records_of(folder) == records[start]);
    }
  }
  CHECK(records.at("arm:first") == records.at(first.path().string()));
  CHECK(records.at("arm:first") == records.at(first.checkpoint_path().string()));
  CHECK_FALSE(records.at("arm:first").at("metrics") == records.at("").at("metrics"));
}

TEST_CASE("what a run cannot start from is refused in one line", "[start]") {
  const TemporaryFolder root;
  const auto refusal = [&](const std::string& start) {
    TrainConfig config = with_seed(0);
    config.start_from = start;
    const std::string early =
        message_of<InvalidArgument>([&] { check_training(parsed(config), small_dataset); });
    const RunFolder folder(root.path(), {"experiment", "arm", 0});
    CHECK(message_of<InvalidArgument>([&] { run_training(parsed(config), small_dataset, folder, ignore); }) ==
          early);
    return early;
  };
  const std::string missing = (root / "nowhere").string();
  check_says(refusal(missing), {"start_from = " + missing, "run's folder", "arm:NAME"});
  const std::string damaged = root.put("damaged.safetensors", "no such file").string();
  check_says(refusal(damaged), {"start_from = ", "damaged.safetensors"});
  SafetensorsFile other;
  other.tensors.push_back({"model.conv1.weight", Array::zeros({3, 3})});
  const std::filesystem::path file = root / "other.safetensors";
  write_safetensors(file, other);
  check_says(refusal(file.string()), {"start_from = ", "model.conv1.weight", "(3, 3)", "the model wants"});
  other.tensors[0].name = "unknown";
  write_safetensors(file, other);
  check_says(refusal(file.string()), {"start_from = ", "no tensor"});
  TrainConfig config = with_seed(0);
  config.start_from = "arm:absent";
  const RunFolder folder(root.path(), {"experiment", "arm", 0});
  check_says(
      message_of<InvalidArgument>([&] { run_training(parsed(config), small_dataset, folder, ignore); }),
      {"start_from = arm:absent", "absent/seed0"});
}

}  // namespace
}  // namespace halfscope::start_weights_test
