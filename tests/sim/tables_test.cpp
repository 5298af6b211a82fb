// Every model, data set and optimizer of the tables trains, and trains alike on the CPU and on the device.
#include "sim/data/datasets.hpp"
#include "sim/models/models.hpp"
#include "sim/optim/optimizers.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/idx_files.hpp"
#include "tests/sim/parity_runs.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope {
namespace {

/// Thirteen images of 8x8 with a class each, and as many words: data for every entry of the table.
class SmallData {
 public:
  SmallData() {
    std::string pixels, labels, words;
    for (int image = 0; image < count; ++image) {
      for (int i = 0; i < 8 * 8; ++i) pixels += static_cast<char>((i * (image + 3)) % 251);
      labels += static_cast<char>(image % 10);
      for (std::size_t word = 0; word < 20; ++word)
        words += std::string(1 + word % 3, static_cast<char>('a' + image)) + " ";
    }
    for (const char* split : {"train", "t10k"}) {
      put(std::string(split) + "-images-idx3-ubyte", idx_bytes({count, 8, 8}, pixels));
      put(std::string(split) + "-labels-idx1-ubyte", idx_bytes({count}, labels));
    }
    put("text", words);
  }
  [[nodiscard]] std::unique_ptr<Dataset> open(const DatasetEntry& entry) const {
    return entry.open({.data = entry.kind == DataKind::text ? folder_ / "text" : folder_.path(),
                       .image_size = 40,
                       .vocabulary = 30,
                       .sequence_length = 4});
  }

 private:
  static constexpr int count = 13;
  void put(const std::string& name, const std::string& bytes) { static_cast<void>(folder_.put(name, bytes)); }
  TemporaryFolder folder_;
};

/// A data set with few test examples: to evaluate all takes longer than a step.
class FewTested final : public Dataset {
 public:
  explicit FewTested(std::unique_ptr<Dataset> all) : all_(std::move(all)) {}
  [[nodiscard]] std::int64_t size(Split split) const override {
    return split == Split::train ? all_->size(split) : std::min<std::int64_t>(all_->size(split), 4);
  }
  [[nodiscard]] Shape example_shape() const override { return all_->example_shape(); }
  [[nodiscard]] std::int64_t class_count() const override { return all_->class_count(); }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    return all_->batch(split, indices);
  }

 private:
  std::unique_ptr<Dataset> all_;
};

/// One step in FP16; the largest model has 11 million weights.
TrainConfig one_step(std::string_view model) {
  TrainConfig config{.policy = "fp16_mixed"};
  config.model = model;
  config.steps = 1;
  config.batch = 2;
  config.learning_rate = 1e-3;
  config.loss_scale = "128";
  config.accumulate = "fp32_sequential";
  return config;
}

TEST_CASE("every model trains on a data set of the table, and each data set has a model", "[tables][cuda]") {
  const SmallData data;
  std::map<std::string_view, int> fits;
  for (const ModelEntry& model : model_table) {
    for (const DatasetEntry& entry : datasets) {
      INFO("model " << model.name << ", data set " << entry.name);
      try {
        check_parity(one_step(model.name), FewTested(data.open(entry)), {R"("loss":)"});
        ++fits[model.name];
        ++fits[entry.name];
      } catch (const InvalidArgument& error) {
        check_says(error.what(), {"model " + std::string(model.name)});
      }
    }
    INFO("model " << model.name);
    CHECK_FALSE(model.summary.empty());
    CHECK(fits[model.name] > 0);
  }
  for (const DatasetEntry& entry : datasets) {
    INFO("data set " << entry.name);
    CHECK_FALSE(entry.summary.empty());
    CHECK(fits[entry.name] > 0);
  }
}

TEST_CASE("every optimizer lowers the loss, alike on the CPU and on the device", "[tables][cuda]") {
  for (const OptimizerEntry& entry : optimizer_table) {
    INFO("optimizer " << entry.name);
    CHECK_FALSE(entry.summary.empty());
    TrainConfig config;
    config.optimizer = entry.name;
    config.steps = 40;
    config.batch = 16;
    config.learning_rate = 1e-2;
    const SmallDataset dataset;
    Trainer trainer(config, dataset);
    const double before = trainer.evaluate().loss;
    for (std::int64_t i = 0; i < config.steps; ++i) static_cast<void>(trainer.step());
    CHECK(trainer.evaluate().loss < 0.5 * before);
    config = watched({.policy = "fp16_pure"});
    config.optimizer = entry.name;
    check_parity(config, dataset, {R"("tensors":[{)", R"("updates":[{)"});
  }
}

}  // namespace
}  // namespace halfscope
