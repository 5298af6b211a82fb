// Gradient clipping, warm-up and the weight of the loss.
#include "sim/optim/clip.hpp"

#include <cmath>

#include "sim/train/trainer.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::clip_test {
namespace {

/// Two parameters whose gradients' norm is 13.
ParameterStore two_gradients() {
  ParameterStore store;
  store.add("a", Array::zeros({2})).gradient = Array::from({2}, {3.0f, -4.0f});
  store.add("b", Array::zeros({1})).gradient = Array::from({1}, {12.0f});
  return store;
}

double norm_of(const ParameterStore& store, float factor = 1) {
  std::vector<double> sums(square_sums(store));
  sum_gradient_squares(store, factor, sums);
  return gradient_norm(sums);
}

TEST_CASE("gradients are clipped together, by their common norm", "[clip]") {
  const ParameterStore store = two_gradients();
  CHECK(norm_of(store) == 13.0);
  CHECK(norm_of(store, 0.5f) == 6.5);
  CHECK(clip_factor(13.0, 13.0) == 1.0f);
  CHECK(clip_factor(13.0, 6.5) == 0.5f);
}

TEST_CASE("clipping before the scale is taken out takes gradients down by the scale once more", "[clip]") {
  ParameterStore store;
  store.add("a", Array::zeros({2})).gradient = Array::from({2}, {3.0f * 1024, 4.0f * 1024});
  const Array& gradient = store.parameters[0].gradient;
  const float unscale = 1.0f / 1024, unscaled = clip_factor(norm_of(store, unscale), 1.0),
              scaled = clip_factor(norm_of(store), 1.0);
  CHECK(gradient[0] * unscale * unscaled == Approx(0.6));
  CHECK(gradient[1] * unscale * unscaled == Approx(0.8));
  CHECK(gradient[0] * unscale * scaled == Approx(5.86e-4).epsilon(1e-3));
  CHECK(gradient[1] * unscale * scaled == Approx(7.81e-4).epsilon(1e-3));
}

TEST_CASE("the norm counts every element, however many", "[clip]") {
  for (const std::int64_t size : {1, 7, 8, 31, 1000}) {
    ParameterStore store;
    Array ones({size});
    for (std::size_t i = 0; i < ones.size(); ++i) ones[i] = 1.0f;
    store.add("a", Array::zeros({size})).gradient = std::move(ones);
    CHECK(norm_of(store) == std::sqrt(static_cast<double>(size)));
  }
}

TEST_CASE("a norm that is no number reaches the gradients", "[clip]") {
  for (const float bad : {INFINITY, std::nanf("")}) {
    ParameterStore store = two_gradients();
    store.parameters[0].gradient[0] = bad;
    CHECK(std::isnan(bad * clip_factor(norm_of(store), 1.0)));
  }
}

TEST_CASE("the learning rate grows linearly over the warm-up and follows its schedule", "[warmup]") {
  TrainConfig config{.steps = 100, .learning_rate = 0.5, .schedule = "constant", .warmup_steps = 4};
  CHECK(learning_rate(parsed(config), 0) == 0.125);
  CHECK(learning_rate(parsed(config), 2) == 0.375);
  CHECK(learning_rate(parsed(config), 3) == 0.5);
  CHECK(learning_rate(parsed(config), 99) == 0.5);
  config.schedule = "cosine";
  const double warm = learning_rate(parsed(config), 1);
  config.warmup_steps = 0;
  CHECK(warm == 0.5 * learning_rate(parsed(config), 1));
  CHECK(learning_rate(parsed(config), 0) == 0.5);
}

/// The loss over the test set after a few steps.
double loss_after(const TrainConfig& config) {
  const SmallDataset dataset;
  Trainer trainer(config, dataset);
  for (int i = 0; i < 5; ++i) (void)trainer.step();
  return trainer.evaluate().loss;
}

TEST_CASE("a loss weight is part of the gradient, its scale is not", "[loss_weight]") {
  const TrainConfig plain{.batch = 32, .optimizer = "sgd", .learning_rate = 0.0625};
  TrainConfig weighted = plain;
  weighted.loss_weight = 0x1p-8;
  CHECK(loss_after(weighted) != loss_after(plain));
  weighted.learning_rate = 16;  // the same step again: powers of two are exact in FP32
  CHECK(loss_after(weighted) == loss_after(plain));
  weighted.loss_scale = "1024";
  CHECK(loss_after(weighted) == loss_after(plain));
}

TEST_CASE("training clips the unscaled gradient", "[clip]") {
  TrainConfig config{.batch = 32, .optimizer = "sgd", .learning_rate = 0.0625, .clip_norm = 0.125};
  const double clipped = loss_after(config);
  config.loss_scale = "1024";
  CHECK(loss_after(config) == clipped);
  config.clip_gradients = "scaled";  // by a norm that is 1024 times as large
  CHECK(loss_after(config) != clipped);
  config.clip_norm = 128;
  CHECK(loss_after(config) == clipped);
  config.clip_norm = 0;
  CHECK(loss_after(config) != clipped);
}

}  // namespace
}  // namespace halfscope::clip_test
