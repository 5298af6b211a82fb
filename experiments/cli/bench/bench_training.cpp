// Times steps of the convolutional classifier, of the GRU language model and of the transformer.
#include "experiments/cli/bench/bench_training.hpp"

#include <nlohmann/json.hpp>

#include <halfscope/core/random.hpp>

#include "sim/data/datasets.hpp"
#include "sim/train/records.hpp"

namespace halfscope {
namespace {

/// Noise of Fashion-MNIST's shape: training takes as long as on the images.
class NoiseImages final : public Dataset {
 public:
  NoiseImages() {
    for (std::size_t i = 0; i < pixels_.size(); ++i) pixels_[i] = RandomStream{.seed = 2}.uniform(i) - 0.5f;
  }
  [[nodiscard]] std::int64_t size(Split) const override { return images; }
  [[nodiscard]] Shape example_shape() const override { return {28, 28, 1}; }
  [[nodiscard]] std::int64_t class_count() const override { return 10; }
  [[nodiscard]] Batch batch(Split, std::span<const std::int64_t> indices) const override {
    Batch batch{Array({static_cast<std::int64_t>(indices.size()), 28, 28, 1}), {}};
    float* to = batch.inputs.data();
    for (const std::int64_t index : indices) {
      batch.labels.push_back(static_cast<std::int32_t>(index % 10));
      to = std::copy_n(pixels_.begin() + index * image, image, to);
    }
    return batch;
  }

 private:
  static constexpr std::int64_t images = 512, image = 28 * 28;
  std::vector<float> pixels_ = std::vector<float>(static_cast<std::size_t>(images * image));
};

/// Random words: a language model takes as long over them as over a text.
class NoiseWords final : public Dataset {
 public:
  [[nodiscard]] std::int64_t size(Split) const override { return 512; }
  [[nodiscard]] Shape example_shape() const override { return {time}; }
  [[nodiscard]] std::int64_t class_count() const override { return 4096; }
  [[nodiscard]] Batch batch(Split, std::span<const std::int64_t> indices) const override {
    Batch batch;
    for (const std::int64_t index : indices) {
      for (std::int64_t t = 0; t < time; ++t) {
        const float at = RandomStream{.seed = 4}.uniform(static_cast<std::uint64_t>(index * time + t));
        batch.tokens.push_back(static_cast<std::int32_t>(4096 * at));
      }
    }
    batch.labels = batch.tokens;
    return batch;
  }

 private:
  static constexpr std::int64_t time = 32;
};

const NoiseImages& images() {
  static const NoiseImages noise;
  return noise;
}

TrainConfig mixed_precision() {
  return {.steps = 1'000'000, .policy = "fp16_mixed", .loss_scale = "1024", .observe_every = 0};
}

TrainConfig language_model() {
  TrainConfig config = mixed_precision();
  config.model = "gru_lm";
  config.batch = 64;
  return config;
}

/// Seconds of timing: an overhead of a few per cent needs many steps to stand out from the machine's noise.
constexpr double tracking_time = 4;

/// Expected time of a step relative to another policy's.
constexpr double step_time = 1;

/// Tensors that the trackers watch.
struct Watch {
  std::string trackers = "cast_statistics";
  std::string roles;
};

BenchResult tracked(TrainConfig config, const Dataset& dataset, const Watch& watch) {
  config.trackers = "none";
  Trainer plain(config, dataset);
  config.trackers = watch.trackers;
  config.observe_roles = watch.roles;
  config.observe_every = 1;
  Trainer watched(config, dataset);
  const auto step = [](Trainer& trainer) {
    RecordText records;
    append_record(records, trainer.step(), nullptr);
  };
  const Times times = time_in_turn([&] { step(watched); }, [&] { step(plain); }, tracking_time);
  return {100 * (1 / times.ratio - 1), "% more", times.ratio, "the step untracked"};
}

/// Trains with real 16-bit numbers.
TrainConfig on_device(TrainConfig config) {
  config.device = "cuda";
  config.batch = 512;
  config.execution = "native";
  return config;
}

/// A recipe with operands of products in formats of their own, which needs no loss scale.
TrainConfig with_recipe(TrainConfig config, std::string_view policy) {
  config.policy = policy;
  config.loss_scale = "none";
  return config;
}

/// The transformer of the experiments on block formats.
TrainConfig translation_model() {
  TrainConfig config = mixed_precision();
  config.model = "transformer";
  config.dataset = "numbers_to_words";
  config.batch = 64;
  config.model_options["embedding_size"] = 96;
  config.model_options["heads"] = 4;
  return config;
}

BenchResult beside_fp32(const TrainConfig& config, const Dataset& dataset) {
  TrainConfig single = config;
  single.policy = "fp32";
  single.loss_scale = "none";
  Trainer mixed(config, dataset), full(single, dataset);
  const Times times = time_in_turn([&] { (void)mixed.step(); }, [&] { (void)full.step(); }, step_time);
  return {times.ours * 1e3, "ms", times.ratio, "the policy fp32"};
}

}  // namespace

BenchResult bench_training_step() {
  return beside_fp32(mixed_precision(), images());
}

BenchResult bench_training_step_of_words() {
  return beside_fp32(language_model(), NoiseWords());
}

BenchResult bench_recipe_of_words(std::string_view policy) {
  return beside_fp32(with_recipe(language_model(), policy), NoiseWords());
}

BenchResult bench_recipe_of_translation(std::string_view policy) {
  const TrainConfig config = with_recipe(translation_model(), policy);
  return beside_fp32(config, *open_dataset(config.dataset, {}));
}

BenchResult bench_tracked_weight_gradients() {
  return tracked(mixed_precision(), images(), {.roles = "weight_gradient"});
}

BenchResult bench_tracked_tensors() {
  return tracked(mixed_precision(), images(), {.roles = "all"});
}

BenchResult bench_tracked_weight_gradients_of_words() {
  return tracked(language_model(), NoiseWords(), {.roles = "weight_gradient"});
}

BenchResult bench_tracked_tensors_of_words() {
  return tracked(language_model(), NoiseWords(), {.roles = "all"});
}

BenchResult bench_cuda_tracked_images() {
  return tracked(on_device(mixed_precision()), images(), {"all", "all"});
}

BenchResult bench_cuda_tracked_words() {
  TrainConfig config = on_device(language_model());
  config.model_options["embedding_size"] = config.model_options["hidden_size"] = 512;
  return tracked(config, NoiseWords(), {"all", "all"});
}

}  // namespace halfscope
