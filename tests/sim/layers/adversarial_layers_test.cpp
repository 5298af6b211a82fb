// The layers of generators and discriminators at their edges: sums in the order of a convolution's backward
// pass, saturated probabilities, and what does not fit.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/layers/layers.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::adversarial_layers_test {
namespace {

std::vector<float> numbers(const Array& array) {
  return {array.values().begin(), array.values().end()};
}

/// Results of a layer of an input and perhaps a weight, for a gradient of its output.
struct Made {
  std::vector<float> y, input_gradient, weight_gradient;
};

using Layer = std::function<TensorRef(Tape&, TensorRef, ParameterStore&)>;

/// `values` are the input and, where there are two, the weight.
Made run_with_gradient(const PrecisionPolicy& policy, std::vector<Array> values, const Array& gradient,
                       const Layer& layer) {
  TrackerList none;
  Caster caster(policy, 0, none);
  Tape tape(caster, Phase::training);
  ParameterStore store;
  for (Array& value : values) store.add("p" + std::to_string(store.parameters.size()), std::move(value));
  const TensorRef y = layer(tape, leaf(tape, store.parameters[0]), store);
  const auto backward = [&](BackwardScope& t, const Array&) { t.add_gradient(y, gradient.clone()); };
  tape.backward(loss_with(tape, backward), 1);
  Made made{numbers(tape.value(y)), numbers(store.parameters[0].gradient), {}};
  if (store.parameters.size() > 1) made.weight_gradient = numbers(store.parameters[1].gradient);
  return made;
}

TEST_CASE("a transposed convolution is a convolution's backward pass, bit for bit", "[adversarial_layers]") {
  struct Geometry {
    Shape small, large, weight;
    Stride stride;
    Border padding;
  };
  std::vector<PrecisionPolicy> policies{fp32_policy(), fp16_mixed_policy()};
  for (const char* products : {"fp32_sequential", "fp16_chunked(4)", "bf16_tensor_core(ampere)"}) {
    policies.push_back(fp32_policy());
    policies.back().products = parse_accumulate_model(products);
  }
  for (const Geometry& g : {Geometry{{2, 4, 5, 6}, {2, 8, 10, 3}, {4, 4, 3, 6}, 2, {1, 1}},
                            Geometry{{2, 1, 1, 17}, {2, 4, 4, 9}, {4, 4, 9, 17}, 1, {0, 0}},
                            Geometry{{1, 3, 4, 5}, {1, 5, 12, 7}, {3, 5, 7, 5}, {2, 3}, {1, 1}}}) {
    for (const PrecisionPolicy& policy : policies) {
      INFO(to_string(g.weight) << ", " << to_string(policy.products));
      const Array small = uniform_array(g.small, -1, 1, 1), large = uniform_array(g.large, -1, 1, 2),
                  weight = uniform_array(g.weight, -1, 1, 3);
      const auto both = [](const Array& x, const Array& w) {
        std::vector<Array> values;
        values.push_back(x.clone());
        values.push_back(w.clone());
        return values;
      };
      const Made there =
          run_with_gradient(policy, both(large, weight), small, [&](Tape& t, TensorRef x, ParameterStore& s) {
            return conv2d(t, "y", x, {.weight = s.parameters[1], .stride = g.stride, .padding = g.padding});
          });
      const Made back =
          run_with_gradient(policy, both(small, weight), large, [&](Tape& t, TensorRef x, ParameterStore& s) {
            return conv_transpose2d(t, "y", x,
                                    {.weight = s.parameters[1], .stride = g.stride, .padding = g.padding});
          });
      // The gradient of one is the input of the other, rounded to the same format.
      CHECK(back.y == there.input_gradient);
      CHECK(back.input_gradient == there.y);
      CHECK(back.weight_gradient == there.weight_gradient);
    }
  }
}

TEST_CASE("a leaky ReLU rounds, and its gradient goes by the sign of its input", "[adversarial_layers]") {
  const auto leaky = [](Tape& t, TensorRef x, ParameterStore&) { return leaky_relu(t, "y", x, 0.25f); };
  std::vector<Array> x;
  // 0.25 of -2^-24 rounds to a zero in FP16, of -(1 + 2^-10) 2^-13 to a number less precise.
  x.push_back(Array::from({5}, {3, -0x1p-24f, -0x1.004p-13f, 0, -65504}));
  const Made made =
      run_with_gradient(fp16_mixed_policy(), std::move(x), Array::from({5}, {1, 1, 1, 1, 3}), leaky);
  CHECK(made.y == std::vector<float>{3, 0, -0x1p-15f, 0, -16376});
  CHECK(made.input_gradient == std::vector<float>{1, 0.25f, 0.25f, 0.25f, 0.75f});
  std::vector<Array> nan;
  nan.push_back(Array::from({1}, {NAN}));
  CHECK(std::isnan(run_with_gradient({}, std::move(nan), Array::from({1}, {1}), leaky).y[0]));
}

TEST_CASE("a sigmoid in FP16 is 1 from 8.32 on, without a gradient", "[adversarial_layers]") {
  std::vector<Array> x;
  x.push_back(Array::from({4}, {8.3125f, 8.3203125f, -17, -17.5f}));
  const Made made =
      run_with_gradient(fp16_mixed_policy(), std::move(x), Array::from({4}, {1, 1, 1, 1}),
                        [](Tape& t, TensorRef in, ParameterStore&) { return sigmoid(t, "y", in); });
  CHECK(made.y == std::vector<float>{1 - 0x1p-11f, 1, 0x1p-24f, 0});
  CHECK(made.input_gradient[0] > 0);
  CHECK(made.input_gradient[1] == 0);
  CHECK(made.input_gradient[2] == 0x1p-24f);
  CHECK(made.input_gradient[3] == 0);
}

/// The loss and the gradient of probabilities.
Made cross_entropy_of(const PrecisionPolicy& policy, std::initializer_list<float> p,
                      std::initializer_list<float> targets) {
  const auto count = static_cast<std::int64_t>(p.size());
  std::vector<Array> values;
  values.push_back(Array::from({count}, p));
  return run_with_gradient(policy, std::move(values), Array::from({}, {1}),
                           [&](Tape& t, TensorRef x, ParameterStore&) {
                             return binary_cross_entropy(t, "y", x, Array::from({count}, targets));
                           });
}

TEST_CASE("binary cross entropy bounds its logarithms and its denominator", "[adversarial_layers]") {
  const Made right = cross_entropy_of({}, {0, 1}, {0, 1});
  CHECK(right.y[0] == 0);
  CHECK(right.input_gradient == std::vector<float>{0, 0});
  const Made wrong = cross_entropy_of({}, {0, 1}, {1, 0});
  CHECK(wrong.y[0] == 100);
  CHECK(wrong.input_gradient == std::vector<float>{-1 / 1e-12f * 0.5f, 1 / 1e-12f * 0.5f});
  const Made smooth = cross_entropy_of({}, {0.25f}, {0.5f});
  CHECK(smooth.y[0] == Approx(-0.5 * std::log(0.25 * 0.75)));
  CHECK(smooth.input_gradient[0] == -0.25f / 0.1875f);
  CHECK(std::isnan(cross_entropy_of({}, {NAN}, {1}).y[0]));
  CHECK(std::isnan(cross_entropy_of({}, {1.5f}, {1}).y[0]));
}

TEST_CASE("the cross entropy of an FP16 probability overflows where that is the wrong 0 or 1",
          "[adversarial_layers]") {
  // Without rounding p would be 1 - 2^-13, its gradient 2^13; the largest finite one is that of 1 - 2^-11.
  const Made made = cross_entropy_of(fp16_mixed_policy(), {1 - 0x1p-13f, 1 - 0x1p-11f}, {0, 0});
  CHECK(made.y[0] == Approx((100 + 11 * std::log(2.0)) / 2));
  CHECK(std::isinf(made.input_gradient[0]));
  CHECK(made.input_gradient[1] == 0x1p10f);
  CHECK(cross_entropy_of({}, {1 - 0x1p-13f}, {0}).input_gradient[0] == 0x1p13f);
}

TEST_CASE("layers of generators and discriminators say what does not fit", "[adversarial_layers]") {
  TrackerList none;
  Caster caster({}, 0, none);
  Tape tape(caster, Phase::training);
  ParameterStore store;
  Parameter &weight = store.add("w", Array::zeros({4, 4, 3, 2})), &bias = store.add("b", Array::zeros({2}));
  const TensorRef x = tape.input("x", Array::zeros({1, 1, 5, 2})),
                  flat = tape.input("f", Array::zeros({6, 2})),
                  wide = tape.input("v", Array::zeros({1, 1, 5, 3})),
                  none_at_all = tape.input("n", Array::zeros({1, 0, 5, 2}));
  const auto message = [&](TensorRef input, const ConvTranspose2dParameters& parameters) {
    return message_of<InvalidArgument>([&] { (void)conv_transpose2d(tape, "up", input, parameters); });
  };
  check_says(message(flat, {weight}), {"layer up", "(6, 2)", "(4, 4, 3, 2)", "height, width, out, in"});
  check_says(message(wide, {weight}), {"layer up", "(1, 1, 5, 3)", "(4, 4, 3, 2)"});
  check_says(message(x, {bias}), {"layer up", "(1, 1, 5, 2)", "(2)"});
  check_says(message(x, {weight, &bias}), {"layer up", "bias (2)", "(1, 4, 8, 3)"});
  check_says(message(x, {.weight = weight, .stride = {1, 0}}), {"layer up", "stride 1x0", "1 or more"});
  check_says(message(x, {.weight = weight, .padding = {4, 1}}), {"layer up", "padding 4x1", "below"});
  check_says(message(x, {.weight = weight, .padding = {-1, 1}}), {"layer up", "padding -1x1"});
  check_says(message(x, {.weight = weight, .padding = {2, 1}}), {"layer up", "1x5 images", "output of 0x6"});
  check_says(message(none_at_all, {.weight = weight, .stride = 2}), {"layer up", "0x5 images"});
  for (const float slope : {NAN, INFINITY}) {
    check_says(message_of<InvalidArgument>([&] { (void)leaky_relu(tape, "leak", flat, slope); }),
               {"layer leak", "slope", "finite"});
  }
  const auto loss_message = [&](TensorRef p, Array targets) {
    return message_of<InvalidArgument>(
        [&] { (void)binary_cross_entropy(tape, "bce", p, std::move(targets)); });
  };
  check_says(loss_message(flat, Array::zeros({2, 6})), {"layer bce", "(2, 6)", "(6, 2)"});
  check_says(loss_message(none_at_all, Array::zeros({1, 0, 5, 2})), {"layer bce", "(1, 0, 5, 2)"});
}

}  // namespace
}  // namespace halfscope::adversarial_layers_test
