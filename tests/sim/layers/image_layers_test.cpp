// The image layers at their edges: rounding once, extreme values, empty targets, and shapes that do not fit.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/layers/layers.hpp"
#include "sim/layers/predictions.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::image_layers_test {
namespace {

/// A tape and what it needs.
struct Bench {
  explicit Bench(PrecisionPolicy policy = {})
      : caster(std::move(policy), 0, none), tape(caster, Phase::training) {}
  TrackerList none;
  Caster caster;
  Tape tape;
  ParameterStore store;
};

TEST_CASE("a convolution and its bias round once", "[image_layers]") {
  Bench bench(fp16_mixed_policy());
  // 1 + 2^-10 times 2 is 2 + 2^-9; the halfway bias 2^-11 + 2^-11 moves it only where it is added before
  // rounding.
  Parameter& weight = bench.store.add("w", Array::from({1, 1, 2, 1}, {1, 1}));
  Parameter& bias = bench.store.add("b", Array::from({1}, {0x1p-11f}));
  const TensorRef x = bench.tape.input("x", Array::from({1, 1, 1, 2}, {1, 0x1p-11f}));
  const TensorRef y = conv2d(bench.tape, "y", x, {weight, &bias});
  // Rounded twice it would be 1: 1 + 2^-11 is a tie, and so is the next sum.
  CHECK(bench.tape.value(y)[0] == 1 + 0x1p-10f);
}

TEST_CASE("a stride keeps every so-manieth output of the convolution without", "[image_layers]") {
  Bench bench(fp16_mixed_policy());
  Parameter& weight = bench.store.add("w", uniform_array({3, 3, 4, 5}, -1, 1, 1));
  const TensorRef x = bench.tape.input("x", uniform_array({2, 7, 8, 4}, -1, 1, 2));
  const Array all = bench.tape.value(conv2d(bench.tape, "all", x, {weight})).clone();
  for (const std::int64_t stride : {2, 3, 9}) {
    const Array y =
        bench.tape.value(conv2d(bench.tape, "y", x, {.weight = weight, .stride = stride})).clone();
    const std::int64_t height = (6 + stride) / stride, width = (7 + stride) / stride;
    REQUIRE(y.shape() == Shape{2, height, width, 5});
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(y.size()); ++i) {
      const std::int64_t pixel = i / 5, image = pixel / width / height;
      const std::int64_t row = pixel / width % height * stride, column = pixel % width * stride;
      CHECK(y[static_cast<std::size_t>(i)] ==
            all[static_cast<std::size_t>(((image * 7 + row) * 8 + column) * 5 + i % 5)]);
    }
  }
}

TEST_CASE("a residual sum rounds once and hands both sides the same gradient", "[image_layers]") {
  Bench bench(fp16_mixed_policy());
  Parameter& branch = bench.store.add("b", Array::from({3}, {1, 1, 65504}));
  Parameter& shortcut = bench.store.add("s", Array::from({3}, {0x1p-11f, 0x3p-11f, 16}));
  Tape& t = bench.tape;
  const TensorRef y = add_residual(t, "y", leaf(t, branch), leaf(t, shortcut));
  CHECK(t.value(y)[0] == 1);            // a tie, to even
  CHECK(t.value(y)[1] == 1 + 0x1p-9f);  // a tie, to even
  CHECK(std::isinf(t.value(y)[2]));
  const auto backward = [y](BackwardScope& scope, const Array&) {
    scope.add_gradient(y, Array::from({3}, {1, -2, 0x1p-24f}));
  };
  t.backward(loss_with(t, backward), 1);
  for (const Parameter* p : {&branch, &shortcut}) {
    CHECK(std::vector<float>(p->gradient.data(), p->gradient.data() + 3) ==
          std::vector<float>{1, -2, 0x1p-24f});
  }
}

TEST_CASE("sigmoid cross entropy is finite for any logit", "[image_layers]") {
  Bench bench;
  Parameter& logits = bench.store.add("x", Array::from({4}, {-3e38f, -200, 200, 3e38f}));
  const TensorRef right =
      sigmoid_cross_entropy(bench.tape, "right", leaf(bench.tape, logits), Array::from({4}, {0, 0, 1, 1}));
  CHECK(bench.tape.value(right)[0] == 0);
  const TensorRef wrong = sigmoid_cross_entropy(
      bench.tape, "wrong", bench.tape.input("w", Array::from({2}, {-200, 200})), Array::from({2}, {1, 0}));
  CHECK(bench.tape.value(wrong)[0] == 200);
  bench.tape.backward(right, 1);
  for (const float g : logits.gradient.values()) CHECK(g == 0);
}

TEST_CASE("smooth L1 without targets is 0 and sends back zeros", "[image_layers]") {
  Bench bench;
  Parameter& x = bench.store.add("x", uniform_array({5, 4}, -1, 1, 1));
  const TensorRef loss = smooth_l1(bench.tape, "loss", leaf(bench.tape, x), {{}, Array({0, 4}), 5});
  CHECK(bench.tape.value(loss)[0] == 0);
  bench.tape.backward(loss, 8);
  REQUIRE(x.gradient.size() == 20);
  for (const float g : x.gradient.values()) CHECK(g == 0);
}

TEST_CASE("global average pooling adds up as the policy says", "[image_layers]") {
  PrecisionPolicy policy;
  policy.reductions = parse_scoped_accumulate("fp16_sequential@pool");
  Bench bench(policy);
  Array ones({1, 64, 64, 1});
  std::fill_n(ones.data(), ones.size(), 1.0f);
  const TensorRef x = bench.tape.input("x", std::move(ones));
  CHECK(bench.tape.value(global_average_pool(bench.tape, "other", x))[0] == 1);
  // 2048 + 1 is 2048 in FP16: half of the 4096 ones are lost.
  CHECK(bench.tape.value(global_average_pool(bench.tape, "pool", x))[0] == 0.5f);
}

TEST_CASE("image layers say what does not fit", "[image_layers]") {
  Bench bench;
  Tape& t = bench.tape;
  const TensorRef flat = t.input("flat", Array::zeros({6, 4})),
                  image = t.input("image", Array::zeros({1, 4, 4, 3})),
                  scalar = t.input("scalar", Array::zeros({}));
  Parameter& even = bench.store.add("even", Array::zeros({2, 2, 3, 4}));
  Parameter& weight = bench.store.add("weight", Array::zeros({3, 3, 3, 4}));
  Parameter& bias = bench.store.add("bias", Array::zeros({3}));
  const auto says = [](auto&& call, const std::vector<std::string>& parts) {
    check_says(message_of<InvalidArgument>(call), parts);
  };
  says([&] { (void)conv2d(t, "c", image, {even}); }, {"layer c", "(1, 4, 4, 3)", "(2, 2, 3, 4)"});
  says([&] { (void)conv2d(t, "c", image, {.weight = weight, .stride = 0}); },
       {"layer c", "stride 0", "1 or more"});
  says([&] { (void)conv2d(t, "c", image, {weight, &bias}); }, {"layer c", "bias (3)", "(1, 4, 4, 4)"});
  says(
      [&] {
        (void)smooth_l1(t, "s", flat, {{6}, Array::zeros({1, 4}), 1});
      },
      {"layer s", "row 6", "0 to 5"});
  says(
      [&] {
        (void)smooth_l1(t, "s", flat, {{0}, Array::zeros({1, 3}), 1});
      },
      {"layer s", "(1, 3)", "(6, 4)"});
  says(
      [&] {
        (void)smooth_l1(t, "s", flat, {{}, Array({0, 4}), 0});
      },
      {"layer s", "denominator 0", "above 0"});
  says(
      [&] {
        (void)sigmoid_cross_entropy(t, "b", flat, Array::zeros({4, 6}));
      },
      {"layer b", "(4, 6)", "(6, 4)"});
  says([&] { (void)upsample_nearest(t, "u", flat, 2); }, {"layer u", "(6, 4)", "by 2"});
  says([&] { (void)upsample_nearest(t, "u", image, 0); }, {"layer u", "by 0", "1 or more"});
  says([&] { (void)add_residual(t, "a", flat, image); }, {"layer a", "(6, 4)", "(1, 4, 4, 3)"});
  says([&] { (void)concat_channels(t, "k", flat, image); }, {"layer k", "(6, 4)", "(1, 4, 4, 3)"});
  says([&] { (void)global_average_pool(t, "g", flat); }, {"layer g", "(6, 4)"});
  says([&] { (void)total_loss(t, "l", std::array{flat}); }, {"layer l", "scalar", "(6, 4)"});
  says([&] { (void)total_loss(t, "l", std::span<const WeightedLoss>{}); }, {"layer l", "at least one"});
  says(
      [&] {
        (void)total_loss(t, "l", std::array{WeightedLoss{scalar, std::numeric_limits<float>::quiet_NaN()}});
      },
      {"layer l", "finite", "nan"});
  says([&] { (void)concat_channels(t, "k", std::span<const TensorRef>{}); }, {"layer k", "at least one"});
  says([&] { (void)gather_predictions(t, "p", std::array{image}, {.size = 2}); },
       {"layer p", "of 2", "(1, 4, 4, 3)"});
  says([&] { (void)gather_predictions(t, "p", std::array{image}, {.size = 3, .first = 2, .count = 2}); },
       {"layer p", "2 to 3", "of 3"});
}

}  // namespace
}  // namespace halfscope::image_layers_test
