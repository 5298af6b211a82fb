// The layer-wise scale on the tape: exact, where the numbers fit, and what it is for.
#include "sim/tape/layer_scale.hpp"

#include <cmath>

#include <halfscope/format/bits.hpp>

#include "sim/layers/layers.hpp"
#include "sim/train/trainer.hpp"
#include "tests/reference/rounding.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::layer_scale_test {
namespace {

using Scales = std::vector<std::pair<std::string, double>>;

/// Writes down under which scale gradients are cast.
class ScaleWitness final : public Tracker {
 public:
  explicit ScaleWitness(Scales& seen) : seen_(seen) {}
  [[nodiscard]] CastDetail watches_casts(Role role) const override {
    return gradient_roles.contains(role) ? CastDetail::counters : CastDetail::none;
  }
  void on_cast(const CastEvent& event, StepObservations&) override {
    seen_.emplace_back(event.site.tensor, event.site.scale);
  }

 private:
  Scales& seen_;
};

Array uniform(Shape shape, std::uint64_t seed, float size) {
  Array array(std::move(shape));
  for (std::size_t i = 0; i < array.size(); ++i) {
    array[i] = size * (RandomStream{.seed = seed}.uniform(i) - 0.5f);
  }
  return array;
}

/// Two layers one after the other, and where `branches` a third beside the second.
struct Network {
  ParameterStore store;
  LinearParameters first{store.add("w1", uniform({5, 6}, 1, 1)), store.add("b1", Array::zeros({6}))};
  LinearParameters second{store.add("w2", uniform({6, 7}, 2, 1)), store.add("b2", Array::zeros({7}))};
  LinearParameters third{store.add("w3", uniform({6, 3}, 3, 0.01f)), store.add("b3", Array::zeros({3}))};

  /// Backward from the gradients of the outputs, `gradient` (4, 7) and `beside` (4, 3) where it is not empty.
  Scales run(const PrecisionPolicy& policy, const StepContext& context, const Array& gradient,
             const Array& beside) {
    Scales seen;
    TrackerList trackers;
    trackers.push_back(std::make_unique<ScaleWitness>(seen));
    Caster caster(policy, 0, trackers);
    StepObservations observations;
    StepContext observed = context;
    observed.observations = &observations;
    caster.begin_step(observed);
    Tape tape(caster, Phase::training);
    const TensorRef hidden =
        relu(tape, "relu", linear(tape, "l1", tape.input("x", uniform({4, 5}, 4, 1)), first));
    const TensorRef y = linear(tape, "l2", hidden, second), z = linear(tape, "l3", hidden, third);
    const TensorRef loss = loss_with(tape, [&](BackwardScope& t, Array) {
      t.add_gradient(y, gradient.clone());
      if (!beside.empty()) t.add_gradient(z, beside.clone());
    });
    tape.backward(loss, 1);
    return seen;
  }
};

std::vector<float> gradients_of(const Network& network) {
  std::vector<float> all;
  for (const Parameter& parameter : network.store.parameters) {
    all.insert(all.end(), parameter.gradient.values().begin(), parameter.gradient.values().end());
  }
  return all;
}

TEST_CASE("layer-wise scales are exact: FP32 gradients are what they are without, branches included",
          "[tape][layerwise]") {
  const Array gradient = uniform({4, 7}, 5, 1e-6f), beside = uniform({4, 3}, 6, 3.0f);
  Network plain, scaled;
  (void)plain.run(fp32_policy(), {.step = 1}, gradient, beside);
  const Scales seen =
      scaled.run(fp32_policy(), {.step = 1, .layerwise = LayerwiseOptions{}}, gradient, beside);
  CHECK(gradients_of(plain).size() > 90);
  CHECK(gradients_of(scaled) == gradients_of(plain));
  double largest = 1;
  for (const auto& [tensor, scale] : seen) largest = std::max(largest, scale);
  CHECK(largest > 1);
}

/// Scale of one layer, computed here: mean and deviation in two passes.
double expected_scale(const std::vector<double>& g, const Array& weight, double carried) {
  const auto statistics = [](const auto& values) {
    double mean = 0, variance = 0, largest = 0;
    for (const double x : values) mean += x / static_cast<double>(values.size());
    for (const double x : values) {
      variance += (x - mean) * (x - mean) / static_cast<double>(values.size());
      largest = std::max(largest, std::fabs(x));
    }
    return std::array{mean, std::sqrt(variance), largest};
  };
  const auto of_g = statistics(g), of_w = statistics(weight.values());
  return layerwise_scale({.gradient_mean = of_g[0],
                          .gradient_deviation = of_g[1],
                          .gradient_max_abs = of_g[2],
                          .weight_mean = of_w[0],
                          .weight_deviation = of_w[1],
                          .weight_max_abs = of_w[2],
                          .fan_in = weight.extent(1),
                          .carried_scale = carried});
}

double half(double x) {
  return reference::round(x, {fp16});
}

TEST_CASE("in FP16 a layer hands on a scaled gradient, and its weights' are rounded as what came in",
          "[tape][layerwise]") {
  PrecisionPolicy policy = fp32_policy();
  policy = policy.with(Role::activation_gradient, {fp16}).with(Role::weight_gradient, {fp16});
  Network network, unscaled;
  const Array gradient = uniform({4, 7}, 5, 4e-6f);
  const Scales seen = network.run(policy, {.step = 1, .layerwise = LayerwiseOptions{}}, gradient, {});
  (void)unscaled.run(policy, {.step = 1}, gradient, {});

  // The model: forward, then backward of the second layer and of the first, in double; sums this short of
  // numbers this small are the same to FP16 however they are added up, which the FP32 test does not need.
  const Array x = uniform({4, 5}, 4, 1);
  const Array &w1 = network.store.parameters[0].master, &w2 = network.store.parameters[2].master;
  std::vector<double> g(28), hidden(24), hidden_gradient(24);
  for (std::size_t i = 0; i < 28; ++i) g[i] = half(double{gradient[i]});
  const double s2 = expected_scale(g, w2, 1);
  CHECK(s2 > 1);
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t j = 0; j < 6; ++j) {
      float sum = 0, back = 0;
      for (std::size_t k = 0; k < 5; ++k) sum += x[row * 5 + k] * w1[k * 6 + j];
      hidden[row * 6 + j] = std::max(0.0f, sum);
      for (std::size_t k = 0; k < 7; ++k) back += static_cast<float>(s2 * g[row * 7 + k]) * w2[j * 7 + k];
      hidden_gradient[row * 6 + j] = sum > 0 ? half(double{back}) : 0;
    }
  }
  for (std::size_t j = 0; j < 6; ++j) {
    for (std::size_t k = 0; k < 7; ++k) {
      float sum = 0;
      for (std::size_t row = 0; row < 4; ++row) {
        sum += static_cast<float>(hidden[row * 6 + j]) * static_cast<float>(g[row * 7 + k]);
      }
      CHECK(double{network.store.parameters[2].gradient[j * 7 + k]} == half(double{sum}));
    }
  }
  for (std::size_t k = 0; k < 5; ++k) {
    for (std::size_t j = 0; j < 6; ++j) {
      float sum = 0;
      for (std::size_t row = 0; row < 4; ++row) {
        sum += x[row * 5 + k] * static_cast<float>(hidden_gradient[row * 6 + j]);
      }
      CHECK(double{network.store.parameters[0].gradient[k * 6 + j]} == half(double{sum}) / s2);
    }
  }
  CHECK(seen == Scales{{"l2", 1}, {"b2", 1}, {"w2", 1}, {"relu", s2}, {"b1", s2}, {"w1", s2}});
  CHECK(gradients_of(unscaled) != gradients_of(network));
}

TEST_CASE("a layer's scale leaves its gradient in range, and one that is not finite alone", "[layerwise]") {
  const Array weight = uniform({3, 2}, 1, 1e-12f);
  const Array large = Array::from({2}, {3e4f, 1});
  CHECK(layer_scale(large, weight, 1, {}) == 2);
  CHECK(layer_scale(Array::from({2}, {1e-7f, 1e-7f}), weight, 1, {}) == 16);
  CHECK(layer_scale(Array::from({2}, {1e-7f, 1e-7f}), weight, 256, {}) == 4);
  for (const float x : {INFINITY, NAN, 0.0f})
    CHECK(layer_scale(Array::from({2}, {x, 0}), weight, 1, {}) == 1);
}

TEST_CASE("two gradients meet at the larger of their scales that holds the sum", "[layerwise]") {
  const auto meet = [](float a, double a_scale, float b, double b_scale) {
    Array x = Array::from({1}, {a}), y = Array::from({1}, {b});
    const double scale = bring_to_one_scale({x, a_scale}, {y, b_scale}, 65504);
    CHECK(double{x[0]} / scale == double{a} / a_scale);
    CHECK(double{y[0]} / scale == double{b} / b_scale);
    return scale;
  };
  CHECK(meet(1, 4, 1, 4) == 4);
  CHECK(meet(1, 4, 1, 1024) == 1024);
  CHECK(meet(1000, 1, 1, 1024) == 64);
  CHECK(meet(65504, 2, 65504, 4) == 2);
}

TEST_CASE("training under the layer-wise scale flushes fewer gradients than without",
          "[trainer][layerwise]") {
  const SmallDataset dataset;
  const auto flushed_under = [&](const std::string& scaler) {
    TrainConfig config{
        .steps = 5, .batch = 32, .policy = "fp16_mixed", .loss_scale = scaler, .observe_every = 1};
    config.loss_weight = 1e-3;
    config.trackers = "cast_statistics";
    config.record_gradients = "histogram";
    const StepRecord record = Trainer(config, dataset).step();
    std::int64_t flushed = 0;
    for (const TensorCounters& tensor : record.observations->tensors) flushed += tensor.counters.flushed;
    // The record's histogram is of the gradients as the optimizer gets them.
    CHECK(record.gradients->histogram->elements() > 1000);
    CHECK(record.gradients->histogram->max_abs() == Approx(*record.gradients->max_abs).epsilon(1e-3));
    return flushed;
  };
  const std::int64_t without = flushed_under("none"), with = flushed_under("layerwise");
  CHECK(without > 0);
  CHECK(with < without);
}

}  // namespace
}  // namespace halfscope::layer_scale_test
