// Every model, data set and optimizer of the tables trains, and trains alike on the CPU and on the device.
#include "sim/data/datasets.hpp"
#include "sim/models/models.hpp"
#include "sim/optim/optimizers.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/data/idx_files.hpp"
#include "tests/sim/data/wav_files.hpp"
#include "tests/sim/own_options.hpp"
#include "tests/sim/parity_runs.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::tables_test {
namespace {

/// Thirteen images of 8x8 with a class each, as many verses, recordings and sentence pairs: data for every
/// entry of the table.
class SmallData {
 public:
  SmallData() {
    std::string pixels, labels, words, pairs;
    for (int image = 0; image < count; ++image) {
      for (int i = 0; i < 8 * 8; ++i) pixels += static_cast<char>((i * (image + 3)) % 251);
      labels += static_cast<char>(image % 10);
      put_recording(image);
      pairs += "cat " + std::string(1, static_cast<char>('a' + image)) + "\tun chat " +
               std::to_string(image) + "\n";
      words += "Ge1:" + std::to_string(image + 1) + " ";
      for (std::size_t word = 0; word < 20; ++word)
        words += std::string(1 + word % 3, static_cast<char>('a' + image)) + " ";
      words += "\n";
    }
    for (const char* split : {"train", "t10k"}) {
      put(std::string(split) + "-images-idx3-ubyte", idx_bytes({count, 8, 8}, pixels));
      put(std::string(split) + "-labels-idx1-ubyte", idx_bytes({count}, labels));
    }
    put("text", words);
    put("pairs", pairs);
  }
  [[nodiscard]] std::unique_ptr<Dataset> open(const DatasetEntry& entry) const {
    return entry.kind.open({.data = source(entry.kind.data),
                            .options = {{"image_size", 40}, {"vocabulary", 30}, {"sequence_length", 8}}});
  }

 private:
  static constexpr int count = 13;
  [[nodiscard]] std::filesystem::path source(DataKind kind) const {
    if (kind == DataKind::none) return {};
    if (kind == DataKind::text) return folder_ / "text";
    if (kind == DataKind::pairs) return folder_ / "pairs";
    return kind == DataKind::speech ? folder_ / "speech" : folder_.path();
  }
  void put_recording(int number) {
    const auto length = static_cast<std::size_t>(2000 + 160 * number);
    const std::string name = "speech/" + std::string(1, static_cast<char>('a' + number));
    put(name + ".wav",
        wav_bytes(pcm_bytes(uniform_floats(length, -0.5f, 0.5f, static_cast<std::uint64_t>(number)))));
    put(name + ".txt", number % 2 == 0 ? "ab" : "a b");
  }
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
  [[nodiscard]] std::int64_t token_count() const override { return all_->token_count(); }
  [[nodiscard]] TextLabels text_labels() const override { return all_->text_labels(); }
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
  config.operations.order = "fp32_sequential";
  return config;
}

TEST_CASE("every model trains on a data set of the table, and each data set has a model",
          "[tables][cuda][repeats]") {
  const SmallData data;
  std::map<std::string_view, int> fits;
  for (const ModelEntry& model : model_table) {
    for (const DatasetEntry& entry : datasets) {
      INFO("model " << model.name << ", data set " << entry.name);
      const FewTested dataset(data.open(entry));
      try {
        static_cast<void>(Trainer(one_step(model.name), dataset).step());
      } catch (const InvalidArgument& error) {
        check_says(error.what(), {"model " + std::string(model.name)});
        continue;
      }
      const bool is_first = fits[model.name] == 0 || fits[entry.name] == 0;  // the other pairs take minutes
      ++fits[model.name];
      ++fits[entry.name];
      if (is_first) check_parity(one_step(model.name), dataset, {R"("loss":)"});
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

/// The first data set of the table that the model trains on.
std::unique_ptr<Dataset> data_for(const ModelEntry& model, const SmallData& data) {
  for (const DatasetEntry& entry : datasets) {
    auto all = std::make_unique<FewTested>(data.open(entry));
    try {
      static_cast<void>(Trainer(one_step(model.name), *all).step());
      return all;
    } catch (const InvalidArgument&) {
      continue;
    }
  }
  return nullptr;
}

/// Weights, buffers and optimizer state as their bytes.
std::string bytes_of(const SafetensorsFile& checkpoint) {
  std::string bytes;
  for (const auto& tensor : checkpoint.tensors) {
    const auto values = tensor.array.values();
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  return bytes;
}

TEST_CASE("every model makes the same bytes on any number of threads, and goes on where it stopped",
          "[tables][repeats]") {
  const SmallData data;
  for (const ModelEntry& model : model_table) {
    INFO("model " << model.name);
    const auto dataset = data_for(model, data);
    REQUIRE(dataset != nullptr);
    TrainConfig config = one_step(model.name);
    config.steps = 2;
    config.model_options = own_options(model.name, {{"dropout", 0.5}, {"label_smoothing", 0.1}});
    const auto checkpoint = [&](int threads) {
      const Threads several(threads);
      Trainer trainer(config, *dataset);
      for (int i = 0; i < 2; ++i) static_cast<void>(trainer.step());
      return bytes_of(trainer.checkpoint());
    };
    const std::string whole = checkpoint(1);
    CHECK((checkpoint(3) == whole));
    Trainer begun(config, *dataset), continued(config, *dataset);
    static_cast<void>(begun.step());
    continued.restore(begun.checkpoint());
    static_cast<void>(continued.step());
    CHECK((bytes_of(continued.checkpoint()) == whole));
    CHECK((bytes_of(begun.checkpoint()) != whole));
  }
}

/// A value that the option does not have by default; sizes stay multiples of the heads.
double another(const EntryOption& option) {
  if (option.kind == OptionKind::whole_number) return option.value / 2;
  return option.value == 0 ? 0.1 : option.value * 0.5;
}

TEST_CASE("every model reads each of its options", "[tables][repeats]") {
  const SmallData data;
  for (const ModelEntry& model : model_table) {
    const auto dataset = data_for(model, data);
    REQUIRE(dataset != nullptr);
    const auto trained = [&](const OptionValues& options) {
      TrainConfig config = one_step(model.name);
      config.model_options = options;
      Trainer trainer(config, *dataset);
      static_cast<void>(trainer.step());
      return bytes_of(trainer.checkpoint());
    };
    const std::string usual = trained({});
    for (const EntryOption& option : model.kind.options) {
      INFO("model " << model.name << ", option " << option.name);
      CHECK((trained({{std::string(option.name), another(option)}}) != usual));
    }
  }
}

/// A model's own width; empty of one that has no such option.
std::optional<double> width_of(const ModelEntry& model) {
  const EntryOption* option = model.kind.options.find("width");
  return option == nullptr ? std::nullopt : std::optional(option->value);
}

TEST_CASE("every model that has a width is smaller at its own, and others refuse one", "[tables]") {
  const auto weights = [](const ModelEntry& model, double width) {
    const Shape shape = model.name == "jasper" ? Shape{28, 40} : Shape{28, 28, 1};
    const Model made = model.kind.make({.example_shape = shape,
                                        .class_count = 10,
                                        .options = {{"width", width}},
                                        .initial = InitialWeights::unset});
    std::size_t count = 0;
    for (const Parameter& parameter : made.store->parameters) count += parameter.master.size();
    return count;
  };
  for (const ModelEntry& model : model_table) {
    INFO("model " << model.name);
    TrainConfig config;
    config.model = model.name;
    const std::optional<double> width = width_of(model);
    if (width) CHECK(parsed(config).config.model_options["width"] == *width);
    config.model_options["width"] = 0.5;
    if (!width) {
      check_says(message_of<InvalidArgument>([&] { static_cast<void>(parsed(config)); }),
                 {"width: the model " + std::string(model.name) + " takes"});
      continue;
    }
    CHECK(parsed(config).config.model_options["width"] == 0.5);
    CHECK(weights(model, *width) < weights(model, 1) / 4);
    check_says(message_of<InvalidArgument>([&] { static_cast<void>(weights(model, 1e-4)); }),
               {"width = 0.0001", "none of a layer's"});
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
}  // namespace halfscope::tables_test
