// The same run on the CPU and on the device: records, histograms and checkpoints are the same bytes.
#include <cstdlib>

#include "sim/train/trainer.hpp"
#include "tests/sim/corners.hpp"
#include "tests/sim/few_words.hpp"
#include "tests/sim/own_options.hpp"
#include "tests/sim/parity_runs.hpp"
#include "tests/sim/planted_dataset.hpp"
#include "tests/sim/repeated_words.hpp"
#include "tests/sim/reversals.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::parity_test {
namespace {

TEST_CASE("a classifier trains alike on the CPU and on the device", "[parity][cuda]") {
  const SmallDataset dataset;
  TrainConfig config = watched({.policy = "fp16_mixed"});
  check_parity(config, dataset);
  config.policy = "fp16_pure";
  config.optimizer = "sgd";
  config.operations.order = "fp16_sequential";
  config.operations.sum_order = "fp16_sequential";
  config.clip_norm = 0.1;
  check_parity(config, dataset);
  config.policy = "fp16_mixed";
  config.operations.order = "tensor_core(hopper)";
  config.roles.weight_gradient = "bf16/stochastic";
  config.roles.activation_gradient = "fp8_e5m2/stochastic";
  check_parity(config, dataset);
}

TEST_CASE("what overflows is found alike on the CPU and on the device", "[parity][cuda]") {
  TrainConfig config = watched({.policy = "fp16_mixed"});
  const Marks source{R"("first_overflow":{)"};
  config.loss_scale = "16777216";  // gradients overflow
  check_parity(config, SmallDataset{}, source);
  config.loss_scale = "1";
  config.steps = 16;  // an epoch, so that the planted example comes
  check_parity(config, PlantedDataset{3, 1e30f}, source);
}

TEST_CASE("a residual network trains alike on the CPU and on the device", "[parity][cuda]") {
  check_parity(watched({.model = "resnet18_narrow", .policy = "fp16_mixed"}), SmallDataset{});
}

TEST_CASE("automatic mixed precision trains alike on the CPU and on the device", "[parity][cuda]") {
  for (const char* policy : {"autocast_cuda", "autocast_cpu", "apex_o1", "apex_o2"}) {
    INFO(policy);
    TrainConfig config = watched({.policy = policy});
    config.operations.infer = "linear@fc2";
    check_parity(config, SmallDataset{});
  }
}

TEST_CASE("recipes train alike on the CPU and on the device", "[parity][cuda]") {
  const Marks source{R"("operands":[{)", R"("histogram":{)"};
  TrainConfig config = watched({.policy = "nvfp4"});
  for (const char* policy : {"mxfp8", "nvfp4", "fp8_delayed", "fp8_deepseek"}) {
    INFO(policy);
    config.policy = policy;
    check_parity(config, SmallDataset{}, source);
  }
  const EnvironmentVariable graphs("HALFSCOPE_CUDA_GRAPH", "on");
  config.policy = "nvfp4_4over6";
  check_parity(config, SmallDataset{}, source);
}

TEST_CASE("attention's products in block formats train alike on the CPU and on the device",
          "[parity][cuda]") {
  TrainConfig config = watched({.model = "transformer", .policy = "mxfp8"});
  config.model_options =
      own_options("transformer", {{"embedding_size", 8}, {"hidden_size", 12}, {"layers", 1}, {"heads", 2}});
  config.operations.operands = "matmul.forward=mxfp8_e4m3";
  check_parity(config, *reversals(), {R"("operands":[{)"});
}

TEST_CASE("steps in micro-batches train alike on the CPU and on the device", "[parity][cuda]") {
  TrainConfig config = watched({.policy = "fp16_mixed"});
  config.parts.micro_batches = 3;
  for (const char* accumulator : {"fp32", "fp16"}) {
    config.parts.gradient_sum = accumulator;
    check_parity(config, SmallDataset{});
    const EnvironmentVariable graphs("HALFSCOPE_CUDA_GRAPH", "on");
    check_parity(config, SmallDataset{});
  }
}

TEST_CASE("ranks train alike on the CPU and on the device", "[parity][cuda]") {
  TrainConfig config = watched({.policy = "fp16_mixed"});
  config.parts.ranks = 3;
  config.parts.micro_batches = 2;
  config.parts.all_reduce = "nccl_ring";
  const EnvironmentVariable graphs("HALFSCOPE_CUDA_GRAPH", "on");
  check_parity(config, SmallDataset{});
}

TEST_CASE("steps launched as graphs train alike", "[parity][cuda]") {
  const EnvironmentVariable graphs("HALFSCOPE_CUDA_GRAPH", "on");
  TrainConfig config = watched({.policy = "fp16_mixed"});
  config.clip_norm = 0.1;
  check_parity(config, SmallDataset{});
  config.loss_scale = "layerwise";  // asks for magnitudes in the middle of the backward pass
  check_parity(config, SmallDataset{});
  const EnvironmentVariable neither("HALFSCOPE_CUDA_GRAPH", "yes");
  check_says(message_of<InvalidArgument>([&] { Trainer(config, SmallDataset{}); }),
             {"HALFSCOPE_CUDA_GRAPH", "'yes'", "on or off"});
}

TEST_CASE("a detector trains alike on the CPU and on the device", "[parity][cuda][long]") {
  check_parity(watched({.model = "ssd", .policy = "fp16_mixed"}), Corners{});
}

TEST_CASE("a segmentation trains alike on the CPU and on the device", "[parity][cuda][long]") {
  check_parity(watched({.model = "unet", .policy = "fp16_mixed"}), CornerPixels{1});
}

TEST_CASE("language models train alike on the CPU and on the device", "[parity][cuda]") {
  for (const char* model : {"gru_lm", "lstm_lm"}) {
    INFO(model);
    TrainConfig config = watched({.model = model, .policy = "fp16_mixed"});
    config.model_options["embedding_size"] = 8;
    config.model_options["hidden_size"] = 12;
    config.model_options["dropout"] = 0.25;
    config.clip_norm = 0.5;
    check_parity(config, FewWords{});
  }
}

TEST_CASE("a projected LSTM with a sampled softmax trains alike on the CPU and on the device",
          "[parity][cuda][long]") {
  TrainConfig config = watched({.model = "big_lstm", .policy = "fp16_mixed"});
  config.model_options["embedding_size"] = 8;
  config.model_options["hidden_size"] = 12;
  config.optimizer = "adagrad";
  check_parity(config, FewWords{});
}

TEST_CASE("translators train alike on the CPU and on the device", "[parity][cuda][long]") {
  const auto pairs = reversals();
  for (const char* model : {"seq2seq_attention", "transformer"}) {
    INFO(model);
    TrainConfig config = watched({.model = model, .policy = "fp16_mixed"});
    config.model_options = own_options(
        model, {{"embedding_size", 8}, {"hidden_size", 12}, {"layers", 1}, {"heads", 2}, {"dropout", 0.25}});
    check_parity(config, *pairs);
  }
}

TEST_CASE("BERT and a student that learns from it train alike on the CPU and on the device",
          "[parity][cuda]") {
  const auto verses = open_repeated_words("masked_verses", 13);
  TrainConfig config = watched({.model = "bert", .policy = "fp16_mixed"});
  config.dataset = "masked_verses";
  config.model_options["embedding_size"] = 8;
  config.model_options["hidden_size"] = 12;
  config.model_options["heads"] = 2;
  config.model_options["dropout"] = 0.25;
  check_parity(config, *verses);
  const TemporaryFolder folder;
  config.teacher = (folder / "teacher.safetensors").string();
  write_safetensors(config.teacher, Trainer(config, *verses).checkpoint());
  config.model = "distil_bert";
  config.model_options["layers"] = 1;
  check_parity(config, *verses);
  const EnvironmentVariable graphs("HALFSCOPE_CUDA_GRAPH", "on");
  check_parity(config, *verses);
}

TEST_CASE("a run goes on where it stopped, on either device", "[parity][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const SmallDataset dataset;
  TrainConfig config = watched({.policy = "fp16_mixed"});
  Trainer whole(config, dataset), begun(config, dataset);
  config.device = "cuda";
  Trainer continued(config, dataset);
  for (int i = 0; i < 2; ++i) (void)begun.step();
  continued.restore(begun.checkpoint());
  for (int i = 0; i < 4; ++i) (void)whole.step();
  for (int i = 0; i < 2; ++i) (void)continued.step();
  const SafetensorsFile expected = whole.checkpoint(), found = continued.checkpoint();
  CHECK(found.metadata == expected.metadata);
  REQUIRE(found.tensors.size() == expected.tensors.size());
  for (std::size_t i = 0; i < expected.tensors.size(); ++i) {
    const auto a = expected.tensors[i].array.values(), b = found.tensors[i].array.values();
    INFO(expected.tensors[i].name);
    CHECK(found.tensors[i].array.device() == Device::cpu);
    CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
}

}  // namespace
}  // namespace halfscope::parity_test
