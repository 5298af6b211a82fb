// Causes of zeros in weight gradients, of a network whose quiet channels are planted.
#include "sim/train/zero_causes.hpp"

#include <numeric>

#include "sim/layers/layers.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/few_words.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::zero_causes_test {
namespace {

constexpr std::int64_t tokens = 32, in = 32, hidden = 64, out = 32;

/// y = relu(x w1) w2 with numbers in [1, 2): the hidden channels 16 to 19 are dead, 20 to 23 quiet in w1 and
/// 36 to 38 in w2, by 2^-6 beside the others of their tiles, and feature 5 of x is 0.
class Planted {
 public:
  Planted() {
    w1_.master = uniform_array({in, hidden}, 1, 2, 1);
    w2_.master = uniform_array({hidden, out}, 1, 2, 2);
    for (std::size_t h = 16; h < 24; ++h)
      for (std::size_t i = 0; i < in; ++i) w1_.master[i * hidden + h] *= h < 20 ? -1.0f : 0x1p-6f;
    for (std::size_t h = 36; h < 39; ++h)
      for (std::size_t o = 0; o < out; ++o) w2_.master[h * out + o] *= 0x1p-6f;
    for (std::size_t t = 0; t < tokens; ++t) x_[t * in + 5] = 0;
  }

  std::vector<ZeroCauses> explained(std::string_view operands) {
    PrecisionPolicy policy;
    policy.operands = parse_operand_rules(operands);
    const RepeatStep repeat = [this](Caster& caster, double) { run(caster); };
    return explain_zeros(policy, 0, {.step = 1}, {repeat, store_});
  }

 private:
  void run(Caster& caster) {
    Tape tape(caster, Phase::training);
    TensorRef y = linear(tape, "fc1", tape.input("x", x_.clone()), w1_);
    y = linear(tape, "fc2", relu(tape, "relu", y), w2_);
    const TensorRef loss = loss_with(
        tape, [&](BackwardScope& scope, Array) { scope.add_gradient(y, gradient_.clone()); }, "objective");
    for (Parameter& parameter : store_.parameters) parameter.gradient = {};
    tape.backward(loss, 1);
  }

  Array x_ = uniform_array({tokens, in}, 1, 2, 3), gradient_ = uniform_array({tokens, out}, 1, 2, 4);
  ParameterStore store_{};
  Parameter& w1_ = store_.add("fc1.weight", Array());
  Parameter& w2_ = store_.add("fc2.weight", Array());
};

using Counts = std::array<std::int64_t, 5>;

void check_causes(const ZeroCauses& causes, std::int64_t zeros, const Counts& by_cause) {
  INFO(causes.tensor);
  CHECK(causes.elements == 2048);
  CHECK(causes.zeros == zeros);
  CHECK(causes.by_cause == by_cause);
  CHECK(causes.cancelled == 0);
}

TEST_CASE("a quiet channel in a tile of loud ones is what makes gradients zero", "[zeros][known]") {
  Planted net;
  const auto tiles = net.explained("*=nvfp4, forward.right=nvfp4_16x16, data_gradient.right=nvfp4_16x16");
  REQUIRE(tiles.size() == 2);
  // Dead channels and the missing feature; quiet ones of w1, then of w2, but for the missing feature.
  check_causes(tiles[0], 405, {4 * 32 + 60, 4 * 31, 3 * 31, 0, 0});
  check_causes(tiles[1], 256, {128, 128, 0, 0, 0});
  // Blocks along a row leave each row its scale.
  for (const char* operands : {"*=nvfp4", "*=mxfp4", ""}) {
    INFO(operands);
    const auto rows = net.explained(operands);
    check_causes(rows[0], 188, {188, 0, 0, 0, 0});
    check_causes(rows[1], 128, {128, 0, 0, 0, 0});
  }
}

TEST_CASE("causes and cancelled elements add up to the zeros of a training's step", "[zeros]") {
  const FewWords words;
  const auto trained = [&](std::int64_t every) {
    TrainConfig config{.model = "llama", .steps = 4, .batch = 4, .policy = "fp32"};
    config.model_options = {{"embedding_size", 32}, {"hidden_size", 48}, {"layers", 1}};
    config.operations.operands = "*=mxfp4, data_gradient.left=mxfp4/stochastic, *=role@output";
    config.zero_causes_every = every;
    Trainer trainer(config, words);
    std::vector<StepRecord> records;
    for (int i = 0; i < 4; ++i) records.push_back(trainer.step());
    return records;
  };
  const std::vector<StepRecord> explained = trained(2), plain = trained(0);
  std::int64_t zeros = 0;
  for (std::size_t step = 0; step < 4; ++step) {
    // An explanation leaves the training as it is.
    CHECK(explained[step].loss == plain[step].loss);
    CHECK(explained[step].zero_causes.empty() == (step == 2));
    CHECK(plain[step].zero_causes.empty());
    for (const ZeroCauses& causes : explained[step].zero_causes) {
      INFO(causes.tensor);
      CHECK(std::accumulate(causes.by_cause.begin(), causes.by_cause.end(), causes.cancelled) ==
            causes.zeros);
      zeros += causes.zeros;
    }
  }
  CHECK(zeros > 0);
}

TEST_CASE("Hadamard's transform has no explanation", "[zeros]") {
  Planted net;
  check_says(
      message_of<InvalidArgument>([&] { (void)net.explained("*=nvfp4, weight_gradient=nvfp4+hadamard"); }),
      {"zero_causes_every", "hadamard"});
}

}  // namespace
}  // namespace halfscope::zero_causes_test
