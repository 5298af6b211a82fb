// Times steps of the convolutional classifier on noise.
#include "experiments/bench_training.hpp"

#include <halfscope/core/random.hpp>

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

const NoiseImages& images() {
  static const NoiseImages noise;
  return noise;
}

TrainConfig mixed_precision() {
  return {.steps = 1'000'000, .policy = "fp16_mixed", .loss_scale = "1024", .observe_every = 0};
}

/// Seconds of timing: an overhead of a few per cent needs many steps to stand out from the machine's noise.
constexpr double tracking_time = 4;

BenchResult tracked(const std::string& roles) {
  TrainConfig config = mixed_precision();
  Trainer plain(config, images());
  config.trackers = "gradient_underflow";
  config.observe_roles = roles;
  config.observe_every = 1;
  Trainer watched(config, images());
  const auto step = [](Trainer& trainer) {
    RecordText records;
    append_record(records, trainer.step(), nullptr);
  };
  const Times times = time_in_turn([&] { step(watched); }, [&] { step(plain); }, tracking_time);
  return {100 * (times.ours / times.others - 1), "% more", times.others / times.ours, "the step untracked"};
}

}  // namespace

BenchResult bench_training_step() {
  TrainConfig single = mixed_precision();
  single.policy = "fp32";
  single.loss_scale = "none";
  Trainer mixed(mixed_precision(), images()), full(single, images());
  const Times times = time_in_turn([&] { (void)mixed.step(); }, [&] { (void)full.step(); });
  return {times.ours * 1e3, "ms", times.others / times.ours, "the policy fp32"};
}

BenchResult bench_tracked_weight_gradients() {
  return tracked("weight_gradient");
}

BenchResult bench_tracked_tensors() {
  return tracked("all");
}

}  // namespace halfscope
