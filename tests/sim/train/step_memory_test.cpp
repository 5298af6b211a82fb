// The account of a step's memory in a run's summary: the same bytes on any machine and after any
// interruption.
#include "sim/train/step_memory.hpp"

#include <nlohmann/json.hpp>

#include "tests/sim/small_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/restored.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::step_memory_test {
namespace {

TrainConfig short_config() {
  TrainConfig config = small_config();
  config.steps = 4;
  config.checkpoint_every = 2;
  return config;
}

Json memory_in(const RunFolder& folder) {
  return read_json(folder.path() / "summary.json").at("memory");
}

Json memory_of_run(const TrainConfig& config) {
  const TemporaryFolder temporary;
  run_in(temporary.path(), config);
  return memory_in({temporary.path(), {"experiment", "arm", config.seed}});
}

std::int64_t bytes_of(const Json& memory, std::string_view role) {
  std::int64_t sum = 0;
  for (const Json& row : memory.at("roles"))
    if (row.at("role") == role) sum += row.at("bytes").get<std::int64_t>();
  return sum;
}

TEST_CASE("a run's summary has the account of its step", "[memory]") {
  const Json memory = memory_of_run(short_config());
  CHECK(memory == to_json(step_memory(parsed(short_config()), small_dataset).items));
  std::int64_t sum = 0;
  for (const Json& row : memory.at("roles")) sum += row.at("bytes").get<std::int64_t>();
  CHECK(memory.at("peak_step_bytes") == sum);
  CHECK(bytes_of(memory, "master_weight") == 2 * bytes_of(memory, "weight"));  // fp16_mixed
  TrainConfig pure = short_config();
  pure.policy = "fp32";
  CHECK(bytes_of(memory_of_run(pure), "master_weight") == 0);
}

TEST_CASE("threads, seeds, interruptions and the number of steps leave the account alone", "[memory]") {
  const TemporaryFolder temporary;
  const TrainConfig config = short_config();
  const Json expected = memory_of_run(config);
  CHECK(with_threads(2, [&] { return memory_of_run(config); }) == expected);
  TrainConfig other = config;
  other.seed = 5;
  other.steps = 2;
  CHECK(memory_of_run(other) == expected);
  const RunFolder folder(temporary.path(), {"experiment", "arm", 0});
  CHECK_THROWS_AS(run_training(parsed(config), small_dataset, folder, killed_at(3)), Killed);
  run_training(parsed(config), small_dataset, folder, ignore);
  CHECK(memory_in(folder) == expected);
}

TEST_CASE("a step in micro-batches keeps the outputs of one, and the sum of the gradients", "[memory]") {
  constexpr const char* recorded_sum = "gradient_accumulator";
  TrainConfig config = short_config();
  const Json whole = memory_of_run(config);
  config.parts.micro_batches = 4;
  config.parts.gradient_sum = "fp16";
  const Json parts = memory_of_run(config);
  // The loss is one number for any batch.
  CHECK(bytes_of(whole, "activation") - 2 == 4 * (bytes_of(parts, "activation") - 2));
  CHECK(bytes_of(whole, recorded_sum) == 0);
  CHECK(bytes_of(parts, recorded_sum) == bytes_of(parts, "weight"));
  config.parts.gradient_sum = "fp32";
  CHECK(bytes_of(memory_of_run(config), recorded_sum) == 2 * bytes_of(parts, "weight"));
}

TEST_CASE("checkpoint segments lower the peak of a step, and nothing else", "[memory][repeats]") {
  TrainConfig config = short_config();
  config.model = "resnet18";
  config.steps = 1;
  const Json whole = memory_of_run(config);
  config.checkpoint_segments = 4;
  const Json parts = memory_of_run(config);
  const std::int64_t saved = bytes_of(whole, "activation") - bytes_of(parts, "activation");
  CHECK(saved > 0);
  CHECK(whole.at("peak_step_bytes").get<std::int64_t>() - parts.at("peak_step_bytes").get<std::int64_t>() ==
        saved);
}

}  // namespace
}  // namespace halfscope::step_memory_test
