// Data-parallel training on virtual ranks: the sum that arrives, one decision a step, rank 0's statistics.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/train/rank_gradients.hpp"
#include "sim/train/run_summary.hpp"
#include "sim/train/trainer.hpp"
#include "tests/reference/all_reduce.hpp"
#include "tests/sim/few_words.hpp"
#include "tests/sim/small_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::ranks_test {
namespace {

TrainConfig on_ranks(std::int64_t ranks, const char* all_reduce, const char* predivide = "ddp") {
  TrainConfig config{.steps = 8, .batch = 24, .policy = "fp16_mixed", .loss_scale = "1024"};
  config.parts.ranks = ranks;
  config.parts.all_reduce = all_reduce;
  config.parts.predivide = predivide;
  return config;
}

/// Any number of copies of one image.
class OneImage final : public Dataset {
 public:
  explicit OneImage(float factor = 1) : factor_(factor) {}
  [[nodiscard]] std::int64_t size(Split) const override { return 4096; }
  [[nodiscard]] Shape example_shape() const override { return images_.example_shape(); }
  [[nodiscard]] std::int64_t class_count() const override { return images_.class_count(); }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    const std::vector<std::int64_t> first(indices.size(), 0);
    Batch batch = images_.batch(split, first);
    for (float& pixel : batch.inputs.values()) pixel *= factor_;
    return batch;
  }

 private:
  SmallDataset images_;
  float factor_;
};

bool same_tensors(const SafetensorsFile& a, const SafetensorsFile& b, std::string_view part = "") {
  bool any = false;
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    if (a.tensors[i].name.find(part) == std::string::npos) continue;
    any = true;
    if (!std::ranges::equal(a.tensors[i].array.values(), b.tensors[i].array.values())) return false;
  }
  return any;
}

TEST_CASE("a store's gradients are one buffer, averaged in the order of the model", "[ranks]") {
  for (const char* order : {"nccl_ring", "nccl_tree"}) {
    const std::int64_t ranks = 5;
    TrainConfig config = on_ranks(ranks, order, "sum");
    config.batch = ranks;
    const RunSettings settings = parsed(config);
    ParameterStore store;
    store.add("matrix", Array::zeros({7, 9}));
    store.add("scalar", Array::zeros({1}));
    store.add("vector", Array::zeros({30}));
    RankGradients gradients(settings, store);
    CHECK(parameter_elements(store) == 94);
    for (int step = 0; step < 2; ++step) {  // begins anew
      reference::Ranks expected{{}, fp16};
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        expected.buffers.emplace_back();
        std::uint64_t seed = static_cast<std::uint64_t>(100 * step + 10 * rank);
        for (Parameter& parameter : store.parameters) {
          parameter.gradient = uniform_array(parameter.master.shape(), -1, 1, seed++);
          for (const float g : parameter.gradient.values())
            expected.buffers.back().push_back(reference::round_to_float(g, {.format = fp16}));
        }
        gradients.put(rank, store);
      }
      const AllReduceCounters counters = gradients.finish(store);
      const bool ring = std::string_view(order) == "nccl_ring";
      const reference::Buffer sums =
          ring ? reference::nccl_ring(expected, 24) : reference::nccl_tree(expected, 48);
      std::size_t next = 0;
      for (const Parameter& parameter : store.parameters) {
        CHECK(parameter.gradient.shape() == parameter.master.shape());
        for (const float mean : parameter.gradient.values()) CHECK(mean == static_cast<float>(sums[next++]));
      }
      CHECK((counters.elements == 94 && counters.adds == 4 * 94));
    }
  }
}

TEST_CASE("ranks with equal gradients train as one rank alone", "[ranks]") {
  const OneImage dataset;
  for (const char* all_reduce : {"nccl_ring/fp32", "nccl_tree", "butterfly", "fp32"}) {
    INFO(all_reduce);
    TrainConfig config = on_ranks(4, all_reduce, "deepspeed");
    config.batch = 16;
    Trainer all(config, dataset);
    TrainConfig own = on_ranks(1, all_reduce);
    own.batch = 4;
    Trainer one(own, dataset);
    for (int step = 0; step < 3; ++step) {
      const StepRecord record = all.step();
      CHECK(record.loss == one.step().loss);
      REQUIRE(record.all_reduce);
      CHECK(record.all_reduce->means_overflowed == 0);
    }
    CHECK(same_tensors(all.checkpoint(), one.checkpoint()));
  }
}

TEST_CASE("ranks train as the whole batch does, but for the order of FP32 sums", "[ranks]") {
  const FewWords dataset;
  const auto losses = [&](std::int64_t ranks, std::int64_t micro_batches) {
    TrainConfig config{.steps = 20, .batch = 16, .policy = "fp32"};
    config.model = "gru_lm";
    config.model_options["embedding_size"] = 8;
    config.model_options["hidden_size"] = 8;
    config.parts.ranks = ranks;
    config.parts.micro_batches = micro_batches;
    Trainer trainer(config, dataset);
    std::vector<float> all;
    for (int i = 0; i < 5; ++i) all.push_back(trainer.step().loss);
    return all;
  };
  const std::vector<float> whole = losses(1, 1);
  for (const auto& [ranks, micro_batches] : {std::pair{4, 1}, {16, 1}, {2, 4}}) {
    const std::vector<float> in_parts = losses(ranks, micro_batches);
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(in_parts[i] == Approx(whole[i]).epsilon(1e-5));
    CHECK(in_parts != whole);
  }
}

TEST_CASE("a sum of 4,096 ranks stagnates in an FP16 ring, and no loss scaler sees it", "[ranks][long]") {
  const OneImage dataset;
  const auto first_step = [&](const char* all_reduce) {
    TrainConfig config = on_ranks(4096, all_reduce, "sum");
    config.batch = 4096;
    config.loss_scale = "dynamic";
    config.scaler_options = {{"initial_scale", 8}};
    return Trainer(config, dataset).step();
  };
  const StepRecord exact = first_step("nccl_ring/fp32"), ring = first_step("nccl_ring");
  CHECK((!exact.skipped && !ring.skipped && ring.gradients->finite));
  const double addend = double{*exact.gradients->max_abs} / 4096;  // the addend of every rank, in FP16
  double sum = addend;
  for (int rank = 1; rank < 4096; ++rank) sum = reference::round_to_float(sum + addend, {.format = fp16});
  CHECK(double{*ring.gradients->max_abs} == sum);
  CHECK(sum < 0.7 * double{*exact.gradients->max_abs});
  const AllReduceCounters& lost = *ring.all_reduce;
  CHECK(lost.adds == 4095 * lost.elements);
  CHECK(lost.stagnated > lost.elements);
  CHECK((lost.means_overflowed == 0 && exact.all_reduce->stagnated == 0));
}

TEST_CASE("a sum that overflows is found after the reduction, and its step skipped", "[ranks]") {
  const OneImage dataset;
  TrainConfig config = on_ranks(8, "nccl_ring", "sum");
  config.loss_scale = "dynamic";
  const double scale = [&] {
    TrainConfig one = on_ranks(1, "nccl_ring");
    one.batch = 3;
    const StepRecord record = Trainer(one, dataset).step();
    return std::exp2(std::floor(std::log2(60000 / double{*record.gradients->max_abs} * record.scale)));
  }();
  config.scaler_options = {{"initial_scale", scale}};
  Trainer trainer(config, dataset);
  const SafetensorsFile before = trainer.checkpoint();
  const StepRecord record = trainer.step();
  CHECK(record.skipped);
  CHECK(record.all_reduce->means_overflowed > 0);
  CHECK(record.all_reduce->addends_overflowed == 0);
  CHECK(same_tensors(before, trainer.checkpoint(), "weight"));
  CHECK(trainer.step().scale == scale / 2);
}

/// One of its training images has an infinite pixel.
class InfinityOnOneRank final : public Dataset {
 public:
  [[nodiscard]] std::int64_t size(Split split) const override { return images_.size(split); }
  [[nodiscard]] Shape example_shape() const override { return images_.example_shape(); }
  [[nodiscard]] std::int64_t class_count() const override { return images_.class_count(); }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    Batch batch = images_.batch(split, indices);
    for (std::size_t i = 0; i < indices.size(); ++i)
      if (indices[i] == 5) batch.inputs[64 * i] = std::numeric_limits<float>::infinity();
    return batch;
  }

 private:
  SmallDataset images_;
};

TEST_CASE("an infinity on one rank of four skips the step of all", "[ranks]") {
  const InfinityOnOneRank dataset;
  for (const AllReduceOrder& order : all_reduce_orders) {
    INFO(order.name);
    TrainConfig config = on_ranks(4, order.name.data());
    config.loss_scale = "dynamic";
    config.scaler_options = {{"initial_scale", 256}};
    Trainer trainer(config, dataset);
    int skips = 0;
    for (int step = 0; step < 4; ++step) {  // an epoch: each image once
      const SafetensorsFile before = trainer.checkpoint();
      if (!trainer.step().skipped) continue;
      ++skips;
      CHECK(same_tensors(before, trainer.checkpoint(), "weight"));
    }
    CHECK(skips == 1);
  }
}

TEST_CASE("running statistics are those of rank 0", "[ranks]") {
  TrainConfig config = on_ranks(2, "nccl_ring");
  Trainer all(config, small_dataset);
  (void)all.step();
  config.parts.ranks = 1;
  config.batch = 12;
  Trainer one(config, small_dataset);
  (void)one.step();
  CHECK(same_tensors(all.checkpoint(), one.checkpoint(), "running"));
}

TEST_CASE("runs on ranks have the same bytes for any thread count, and after a kill", "[ranks]") {
  const TemporaryFolder temporary;
  TrainConfig config = small_config();
  config.steps = 12;
  config.parts.ranks = 8;
  config.parts.micro_batches = 2;
  config.parts.all_reduce = "nccl_ring";
  config.parts.predivide = "fsdp";
  const Records expected = run_in(temporary.path() / "one", config);
  CHECK(with_threads(2, [&] { return run_in(temporary.path() / "two", config); }) == expected);
  const RunFolder folder(temporary.path() / "killed", {"experiment", "arm", 0});
  CHECK_THROWS_AS(run_training(parsed(config), small_dataset, folder, killed_at(9)), Killed);
  run_training(parsed(config), small_dataset, folder, ignore);
  CHECK(records_of(folder) == expected);
}

TEST_CASE("records and summaries tell what all-reduces lost; those of one rank do not", "[ranks]") {
  const TemporaryFolder temporary;
  TrainConfig config = small_config();
  config.steps = 3;
  config.parts.all_reduce = "nccl_tree/bf16";
  const RunFolder one(temporary.path() / "one", {"experiment", "arm", 0});
  run_training(parsed(config), small_dataset, one, ignore);
  CHECK(read_file(one.path() / "metrics.jsonl").find("all_reduce") == std::string::npos);
  CHECK_FALSE(read_json(one.path() / "summary.json").contains("all_reduce"));
  config.parts.ranks = 4;
  const RunFolder four(temporary.path() / "four", {"experiment", "arm", 0});
  run_training(parsed(config), small_dataset, four, ignore);
  AllReduceCounters sum;
  std::int64_t steps = 0;
  for (const Json& record : read_json_lines(four.path() / "metrics.jsonl")) {
    sum.merge(all_reduce_counters(record.at("all_reduce")));
    ++steps;
  }
  const Json summary = read_json(four.path() / "summary.json").at("all_reduce");
  CHECK((steps == 3 && summary.at("steps") == 3 && summary.at("stagnated_steps") == 3));
  CHECK(all_reduce_counters(summary) == sum);
  CHECK((sum.stagnated > 0 && sum.adds == 3 * sum.elements));
  const Json config_json = read_json(four.path() / "config.json");
  CHECK((config_json.at("ranks") == 4 && config_json.at("all_reduce") == "nccl_tree/bf16"));
}

TEST_CASE("ranks that a batch does not have, and unknown reductions, are refused", "[ranks]") {
  const auto message = [](TrainConfig config) {
    return message_of<InvalidArgument>([&] { (void)parsed(config); });
  };
  TrainConfig config = on_ranks(5, "nccl_ring");
  check_says(message(config), {"ranks = 5", "batch = 24", "multiple of 5"});
  config.parts.ranks = 8;
  config.parts.micro_batches = 2;
  check_says(message(config), {"ranks = 8 with micro_batches = 2", "multiple of 16"});
  config.parts.ranks = 65536;
  config.parts.micro_batches = 8;
  config.batch = 524288;
  check_says(message(config), {"524288 parts", "131071"});
  const auto refused = [&](const char* key, const char* value) {
    return message_of<InvalidArgument>([&] { set_field(config, key, value); });
  };
  check_says(refused("ranks", "0"), {"ranks = '0'", "from 1 to"});
  check_says(refused("ranks", "65537"), {"ranks = '65537'"});
  check_says(refused("all_reduce", "ring"), {"all_reduce = 'ring'", "mpi_ring"});
  check_says(refused("all_reduce", "nccl_ring/fp8_e4m3"), {"fp8_e4m3", "bf16"});
  check_says(refused("predivide", "-2"), {"predivide = '-2'", "positive number"});
}

}  // namespace
}  // namespace halfscope::ranks_test
