// Signs of weights: what state_dicts hold and gradients do not.
#include <halfscope/scaling/tensor_report.hpp>

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include <halfscope/core/random.hpp>

#include "tests/support/catch.hpp"

namespace halfscope::weight_signs_test {
namespace {

struct Tensor {
  std::string name;
  std::size_t axes = 2;
  std::vector<float> values;
};

WeightSigns signs_of(const std::vector<Tensor>& tensors, std::string_view file = "model.pt") {
  WeightSigns signs;
  for (const Tensor& tensor : tensors) {
    ExponentHistogram counts;
    counts.add(tensor.values);
    signs.look_at({.name = tensor.name,
                   .file = file,
                   .axes = tensor.axes,
                   .elements = counts.elements(),
                   .lies_around_1 = lie_around_1(counts)});
  }
  return signs;
}

/// Uniform from low to high.
std::vector<float> uniform(std::uint32_t site, std::size_t size, float low, float high) {
  const RandomStream random{.seed = 3, .site = site};
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = low + (high - low) * random.uniform(i);
  return values;
}

TEST_CASE("what only a model holds is a sign of weights", "[advisor]") {
  const Tensor layer{"fc.weight", 2, uniform(0, 64, -0.1f, 0.1f)};
  for (const char* name : {"bn1.running_mean", "layer1.0.bn2.running_var", "stem/moving_variance",
                           "optimizer.state.0.exp_avg", "state.3.momentum_buffer"}) {
    const auto reason = signs_of({layer, {name, 1, uniform(1, 4, 0, 1)}}).reason();
    INFO(name);
    REQUIRE(reason.has_value());
    CHECK(reason->find(name) != std::string::npos);
  }
  CHECK(signs_of({layer, {"ln_f.weight", 1, uniform(2, 768, 0.3f, 3.5f)}}).reason().has_value());
  CHECK(signs_of({layer, {"norm.scale", 1, std::vector<float>(8, 1.0f)}}).reason().has_value());
}

TEST_CASE("a gradient is never taken for a weight", "[advisor]") {
  // 400 gradients of gains and biases, from 2^-30 to 2^10 in size, with magnitudes that are normal.
  const RandomStream random{.seed = 9};
  std::uint64_t drawn = 0;
  const auto normal = [&] {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random.uniform(drawn++));
    return sum - 6;
  };
  for (int trial = 0; trial < 400; ++trial) {
    const double size = std::ldexp(1.0, -30 + trial / 10);
    std::vector<float> values(64);
    for (float& value : values) value = static_cast<float>(size * normal());
    INFO(trial);
    CHECK_FALSE(signs_of({{"norm.weight", 1, values}, {"fc.bias", 1, values}}).reason().has_value());
  }
}

TEST_CASE("names and files that say gradient overrule a sign", "[advisor]") {
  const Tensor statistic{"bn.running_var", 1, {0.5f, 1.5f}};
  CHECK_FALSE(signs_of({statistic, {"fc.weight.grad", 2, {1e-3f}}}).reason().has_value());
  CHECK_FALSE(signs_of({statistic}, "run/Gradients.safetensors").reason().has_value());
}

TEST_CASE("a matrix, a short vector and one with a zero are no gain", "[advisor]") {
  CHECK_FALSE(signs_of({{"fc.weight", 2, std::vector<float>(64, 1.0f)}}).reason().has_value());
  CHECK_FALSE(signs_of({{"norm.weight", 1, std::vector<float>(7, 1.0f)}}).reason().has_value());
  std::vector<float> gain(64, 1.0f);
  gain[5] = 0;
  CHECK_FALSE(signs_of({{"norm.weight", 1, gain}}).reason().has_value());
  gain[5] = 4;
  CHECK_FALSE(signs_of({{"norm.weight", 1, gain}}).reason().has_value());
  gain[5] = -3.9f;
  CHECK(signs_of({{"norm.weight", 1, gain}}).reason().has_value());
}

TEST_CASE("parameters that no name calls gradients are in doubt", "[advisor]") {
  const Tensor layer{"fc.weight", 2, uniform(0, 64, -0.1f, 0.1f)};
  CHECK(signs_of({layer}).are_in_doubt());
  CHECK_FALSE(signs_of({layer}, "gradients.npz").are_in_doubt());
  CHECK_FALSE(signs_of({layer, {"bn.running_var", 1, {0.5f}}}).are_in_doubt());
  CHECK_FALSE(signs_of({{"hidden1", 2, {0.5f}}}).are_in_doubt());
}

}  // namespace
}  // namespace halfscope::weight_signs_test
