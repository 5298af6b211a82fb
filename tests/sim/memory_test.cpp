// Memory of a training step: published counts of ResNet-50, and sums that do not come from the tape.
#include "sim/train/memory.hpp"

#include "sim/data/blank_images.hpp"
#include "sim/models/models.hpp"

namespace halfscope {
namespace {

NetworkElements elements_of(Model (*make)(const ModelSpec&), const Shape& image, std::int64_t classes,
                            std::int64_t batch) {
  const auto images = make_blank_images(image, classes);
  const Model model =
      make({.example_shape = image, .class_count = classes, .initial = InitialWeights::unset});
  return count_elements(
      model,
      [&](std::int64_t count) {
        return images->batch(Split::train, std::vector<std::int64_t>(static_cast<std::size_t>(count), 0));
      },
      batch);
}

std::int64_t outputs_of(const NetworkElements& network, OperationKind kind) {
  std::int64_t sum = 0;
  for (const LayerElements& layer : network.layers)
    if (layer.kind == kind) sum += layer.outputs;
  return sum;
}

std::int64_t bytes_of(const std::vector<MemoryItem>& items, std::string_view name) {
  for (const MemoryItem& item : items)
    if (item.name == name) return item.bytes;
  return 0;
}

TEST_CASE("ResNet-50 has the published weights and feature maps", "[memory]") {
  const NetworkElements one = elements_of(make_resnet50, {224, 224, 3}, 1000, 1);
  CHECK(one.parameters() == 25'557'032);
  CHECK(outputs_of(one, OperationKind::convolution) == 10'587'136);
  CHECK(outputs_of(one, OperationKind::residual_sum) == 5'519'360);
  CHECK(one.statistics == 53'120);
  const MemoryOptions fp32_maps{fp32_policy(), 1, KeptOutputs::feature_maps};
  MemoryOptions mixed_maps = fp32_maps;
  mixed_maps.policy = fp16_mixed_policy();
  const auto weights_and_maps = [](const std::vector<MemoryItem>& items) {
    return bytes_of(items, "weight") + bytes_of(items, "activation");
  };
  CHECK(weights_and_maps(memory_of(one, fp32_maps)) == 4 * (25'557'032 + 16'106'496));
  CHECK(weights_and_maps(memory_of(one, mixed_maps)) == 2 * (25'557'032 + 16'106'496));
  // The paper's "about half" at batch 32, the master copy counted.
  const NetworkElements batch = elements_of(make_resnet50, {224, 224, 3}, 1000, 32);
  const std::int64_t whole = weights_and_maps(memory_of(batch, fp32_maps)),
                     mixed = weights_and_maps(memory_of(batch, mixed_maps)) + 4 * 25'557'032;
  CHECK(whole == 4 * (25'557'032 + 32 * std::int64_t{16'106'496}));
  CHECK(mixed == 6 * std::int64_t{25'557'032} + 64 * std::int64_t{16'106'496});
}

TEST_CASE("memory by role follows the policy and the optimizer", "[memory]") {
  // conv 1 to 16, norm, ReLU, pool; 16 to 32, norm, ReLU, pool; linear to 128, ReLU; linear to the classes;
  // loss.
  const NetworkElements network = elements_of(make_cnn_bn, {8, 8, 1}, 4, 3);
  const std::int64_t parameters = 9 * 16 + 2 * 16 + 9 * 16 * 32 + 2 * 32 + (128 * 128 + 128) + (128 * 4 + 4);
  const std::int64_t outputs = 8 * 8 + (3 * 64 * 16 + 16 * 16) + (3 * 16 * 32 + 4 * 32) + 2 * 128 + 4;
  CHECK(network.parameters() == parameters);
  const std::vector<MemoryItem> fp32 = memory_of(network, {fp32_policy(), 2});
  CHECK(bytes_of(fp32, "weight") == 4 * parameters);
  CHECK(bytes_of(fp32, "master_weight") == 0);
  CHECK(bytes_of(fp32, "optimizer_state") == 8 * parameters);
  CHECK(bytes_of(fp32, "running_statistics") == 4 * 2 * (16 + 32));
  CHECK(bytes_of(fp32, "activation") == 4 * (3 * outputs + 1));
  CHECK(bytes_of(fp32, "activation_gradient") == 4 * 3 * 2 * 64 * 16);
  CHECK(total_bytes(fp32) == bytes_of(fp32, "activation") + bytes_of(fp32, "activation_gradient") +
                                 4 * (4 * parameters + 2 * (16 + 32)));
  const std::vector<MemoryItem> mixed = memory_of(network, {fp16_mixed_policy(), 2});
  CHECK(bytes_of(mixed, "weight") == 2 * parameters);
  CHECK(bytes_of(mixed, "master_weight") == 4 * parameters);
  CHECK(bytes_of(mixed, "weight_gradient") == 2 * parameters);
  CHECK(bytes_of(mixed, "optimizer_state") == 8 * parameters);
  CHECK(bytes_of(mixed, "activation") == 2 * (3 * outputs + 1));
  const std::vector<MemoryItem> pure = memory_of(network, {fp16_pure_policy(), 2});
  CHECK(bytes_of(pure, "master_weight") == 0);
  CHECK(bytes_of(pure, "optimizer_state") == 4 * parameters);
  const PrecisionPolicy fp8 = fp16_mixed_policy().with(Role::activation, parse_quantizer("fp8_e4m3"));
  CHECK(bytes_of(memory_of(network, {fp8, 2}), "activation") == 3 * outputs + 1);
}

}  // namespace
}  // namespace halfscope
