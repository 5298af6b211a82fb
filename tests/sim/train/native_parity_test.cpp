// Native execution: memory of 16 bits, the records and checkpoints those of emulation, byte by byte.
#include "sim/train/trainer.hpp"
#include "tests/sim/corners.hpp"
#include "tests/sim/few_words.hpp"
#include "tests/sim/parity_runs.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::native_parity_test {
namespace {

/// The same numbers in 16-bit memory. On a simulated device, which has no tensor cores, the products are
/// emulated there as on the CPU; on a Hopper they are its own.
void check_native(TrainConfig config, const Dataset& dataset) {
  config.operations.order = config.operations.order.empty() ? "tensor_core(hopper)" : config.operations.order;
  config.steps = 3;
  Marks marks = watched_run;
  if (config.record_gradients != "histogram") std::erase(marks, R"("histogram":{)");
  check_parity(config, dataset, marks, "native");
}

TEST_CASE("native execution of a classifier gives the bits of emulation", "[parity][native][cuda]") {
  const SmallDataset dataset;
  TrainConfig config = watched({.policy = "fp16_mixed"});
  check_native(config, dataset);
  config.loss_scale = "layerwise";
  check_native(config, dataset);
  config.loss_scale = "dynamic";
  config.roles.weight_gradient = "fp16/stochastic";
  config.roles.activation = "fp16/toward_zero";
  config.clip_norm = 0.1;
  config.observe_every = 2;  // steps that nobody watches
  config.record_gradients = "max_abs";
  check_native(config, dataset);
  config.policy = "fp16_no_master";
  config.operations.order = "fp32_sequential";
  check_native(config, dataset);
  for (const char* role : {"weight", "activation", "activation_gradient", "weight_gradient"})
    set_field(config, role, "bf16");
  config.operations.order = "bf16_tensor_core(hopper)";
  check_native(config, dataset);
}

TEST_CASE("native execution of a residual network gives the bits of emulation", "[parity][native][cuda]") {
  check_native(watched({.model = "resnet18_narrow", .policy = "fp16_mixed"}), SmallDataset{});
}

TEST_CASE("native execution of a detector gives the bits of emulation", "[parity][native][cuda][long]") {
  check_native(watched({.model = "ssd", .policy = "fp16_mixed"}), Corners{});
}

TEST_CASE("native execution of a segmentation gives the bits of emulation", "[parity][native][cuda][long]") {
  check_native(watched({.model = "unet", .policy = "fp16_mixed"}), CornerPixels{1});
}

TEST_CASE("native execution of language models gives the bits of emulation", "[parity][native][cuda]") {
  for (const char* model : {"gru_lm", "lstm_lm"}) {
    INFO(model);
    TrainConfig config = watched({.model = model, .policy = "fp16_mixed"});
    config.model_options["embedding_size"] = 8;
    config.model_options["hidden_size"] = 12;
    config.model_options["dropout"] = 0.25;
    config.clip_norm = 0.5;
    check_native(config, FewWords{});
    config.roles.activation_gradient = "fp16/stochastic";
    config.roles.weight = "fp32";  // memory of two kinds
    config.observe_every = 2;
    check_native(config, FewWords{});
  }
}

/// The device memory of a step, after one that has made what stays.
std::int64_t bytes_of_step(const TrainConfig& config, const Dataset& dataset) {
  Trainer trainer(config, dataset);
  (void)trainer.step();
  reset_peak_device_bytes();
  (void)trainer.step();
  return peak_device_bytes();
}

TEST_CASE("native execution holds its tensors in 16 bits", "[native][cuda][long]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const Corners dataset;
  TrainConfig config{.model = "ssd", .device = "cuda", .batch = 32, .trackers = "none"};
  config.operations.order = "fp32_sequential";  // products on tensor cores copy patches besides
  const std::int64_t wide = bytes_of_step(config, dataset);
  config.policy = "fp16_mixed";
  const std::int64_t emulated = bytes_of_step(config, dataset);
  config.execution = "native";
  const std::int64_t native = bytes_of_step(config, dataset);
  INFO(wide << " bytes in FP32, " << emulated << " emulated, " << native << " native");
  CHECK(emulated >= wide);
  CHECK(10 * native < 6 * wide);
}

TEST_CASE("native execution says what it cannot do", "[native][config]") {
  const auto refusal = [](const TrainConfig& config) {
    return message_of<InvalidArgument>([&] { (void)parsed(config); });
  };
  check_says(refusal({.execution = "native"}), {"device = cpu", "give device = cuda"});
  TrainConfig config{.device = "cuda", .execution = "native", .roles = {.activation = "fp8_e5m2"}};
  check_says(refusal(config), {"activation = fp8_e5m2", "give fp16, bf16 or fp32"});
  config.roles.activation = "fp16";
  config.operations.order = "cublas";
  check_says(refusal(config), {"cublas", "weight and activation"});
  check_says(refusal({.operations = {.order = "cublas"}}), {"cublas", "give execution = native"});
}

}  // namespace
}  // namespace halfscope::native_parity_test
