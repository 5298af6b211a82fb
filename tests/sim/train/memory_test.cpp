// Memory of a training step: published counts of ResNet-50, and sums that do not come from the tape.
#include "sim/train/memory.hpp"

#include "sim/data/blank_images.hpp"
#include "sim/models/models.hpp"

namespace halfscope::memory_test {
namespace {

NetworkElements elements_of(Model (*make)(const ModelSpec&), const Shape& image, std::int64_t classes,
                            std::int64_t batch) {
  const auto images = make_blank_images(image, classes);
  const Model model =
      make({.example_shape = image, .class_count = classes, .initial = InitialWeights::unset});
  return count_elements(model,
                        [&](std::int64_t count) {
                          return images->batch(Split::train,
                                               std::vector<std::int64_t>(static_cast<std::size_t>(count), 0));
                        },
                        {batch});
}

/// Bytes per parameter of weights, gradients, master copy and the states of an optimizer.
double bytes_per_parameter(const PrecisionPolicy& policy, std::int64_t states) {
  const Model model =
      alexnet_kind.make({.example_shape = {28, 28, 1}, .class_count = 10, .options = {{"width", 0.0625}}});
  const auto wide = make_blank_images({28, 28, 1}, 10);
  const NetworkElements network = count_elements(
      model,
      [&](std::int64_t count) {
        return wide->batch(Split::train, std::vector<std::int64_t>(static_cast<std::size_t>(count), 0));
      },
      {1, policy});
  std::int64_t bytes = 0;
  for (const MemoryItem& item : memory_of(network, {policy, states})) {
    const std::string_view name = item.name;
    if (name != "activation" && name != "activation_gradient" && name != "running_statistics")
      bytes += item.bytes;
  }
  return static_cast<double>(bytes) / static_cast<double>(network.parameters());
}

TEST_CASE("bytes per parameter are the published ones", "[memory]") {
  CHECK(bytes_per_parameter(fp32_policy(), 0) == 8);   // SGD
  CHECK(bytes_per_parameter(fp32_policy(), 1) == 12);  // with momentum
  CHECK(bytes_per_parameter(fp16_mixed_policy(), 1) == 12);
  CHECK(bytes_per_parameter(fp32_policy(), 2) == 16);  // Adam
  CHECK(bytes_per_parameter(fp16_mixed_policy(), 2) == 16);
  CHECK(bytes_per_parameter(fp16_mixed_policy().with(Role::weight_gradient, {}), 2) == 18);
  CHECK(bytes_per_parameter(fp16_pure_policy(), 2) == 8);
  // FP32 weights, gradients and states, and the casts that the cache keeps.
  CHECK(bytes_per_parameter(autocast_cuda_policy(), 2) == 18);
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

TEST_CASE("ResNet-50 has the published weights and feature maps", "[memory][long]") {
  const NetworkElements one = elements_of(resnet50_kind.make, {224, 224, 3}, 1000, 1);
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
  const NetworkElements batch = elements_of(resnet50_kind.make, {224, 224, 3}, 1000, 32);
  const std::int64_t whole = weights_and_maps(memory_of(batch, fp32_maps)),
                     mixed = weights_and_maps(memory_of(batch, mixed_maps)) + 4 * 25'557'032;
  CHECK(whole == 4 * (25'557'032 + 32 * std::int64_t{16'106'496}));
  CHECK(mixed == 6 * std::int64_t{25'557'032} + 64 * std::int64_t{16'106'496});
}

TEST_CASE("with a master copy ResNet-50 takes less memory than in FP32 from a batch of two on",
          "[memory][long]") {
  const auto bytes_at = [](std::int64_t batch, const PrecisionPolicy& policy) {
    const NetworkElements network = elements_of(resnet50_kind.make, {224, 224, 3}, 1000, batch);
    const auto items = memory_of(network, {policy, 1, KeptOutputs::feature_maps});
    return bytes_of(items, "weight") + bytes_of(items, "master_weight") + bytes_of(items, "activation");
  };
  CHECK(bytes_at(1, fp32_policy()) < bytes_at(1, fp16_mixed_policy()));
  CHECK(bytes_at(2, fp32_policy()) > bytes_at(2, fp16_mixed_policy()));
  CHECK(bytes_at(256, fp16_mixed_policy()) * 100 < bytes_at(256, fp32_policy()) * 51);
}

TEST_CASE("autocast keeps FP32 outputs and both copies of what it casts", "[memory]") {
  const auto elements = [](const PrecisionPolicy& policy) {
    const auto images = make_blank_images({8, 8, 1}, 4);
    const Model model = cnn_bn_kind.make({.example_shape = {8, 8, 1}, .class_count = 4});
    return count_elements(model,
                          [&](std::int64_t count) {
                            return images->batch(
                                Split::train, std::vector<std::int64_t>(static_cast<std::size_t>(count), 0));
                          },
                          {3, policy});
  };
  const NetworkElements plain = elements(fp16_mixed_policy()), listed = elements(autocast_cuda_policy());
  // The input is cast for the first convolution, the logits are not cast back: the loss reads them.
  CHECK(listed.layers.size() == plain.layers.size() + 1);
  CHECK(listed.layers[0].precision == Precision::fp32);
  CHECK(listed.layers[1].name == "conv1.cast");
  CHECK(listed.layers.back().precision == Precision::fp32);
  CHECK(listed.reduced_parameters() == listed.parameters() - 2 * (16 + 32));  // batch norm's are FP32
}

TEST_CASE("memory by role follows the policy and the optimizer", "[memory]") {
  // conv 1 to 16, norm, ReLU, pool; 16 to 32, norm, ReLU, pool; linear to 128, ReLU; linear to the classes;
  // loss.
  const NetworkElements network = elements_of(cnn_bn_kind.make, {8, 8, 1}, 4, 3);
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
}  // namespace halfscope::memory_test
