// Optimizer arithmetic against its formulas in double precision, and its death in FP16.
#include <halfscope/core/isa.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>

#include "lib/nn/optimizer_step.hpp"

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::optimizer_step_test {
namespace {

using Slots = std::vector<std::span<float>>;

constexpr std::size_t count = 1003;

/// Adam's usual constants in its step number `steps`.
AdamStep adam_step(float learning_rate, int steps) {
  return {.learning_rate = learning_rate,
          .beta1 = 0.9f,
          .beta2 = 0.999f,
          .correction1 = 1 - static_cast<float>(std::pow(0.9, steps)),
          .correction2 = 1 - static_cast<float>(std::pow(0.999, steps)),
          .epsilon = 1e-8f};
}

TEST_CASE("sgd, adam and rmsprop follow their formulas on every instruction set", "[update]") {
  const std::vector<float> gradient = uniform_floats(count, -1, 1, 1);
  const std::vector<float> first0 = uniform_floats(count, -1, 1, 2), second0 = uniform_floats(count, 0, 1, 3);
  const AdamStep step = adam_step(1e-3f, 2);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    std::vector<float> velocity = first0, update(count);  // weights that were 0
    std::vector<std::uint32_t> largest(1);
    optimizer_step({.gradient = gradient, .weights = update, .largest = largest},
                   SgdStep{.learning_rate = 0.1f, .momentum = 0.9f}, {}, Slots{velocity});
    std::vector<float> first = first0, second = second0, adam(count);
    optimizer_step({.gradient = gradient, .weights = adam, .largest = largest}, step, {},
                   Slots{first, second});
    std::vector<float> square = second0, momentum = first0, rmsprop(count);
    optimizer_step({.gradient = gradient, .weights = rmsprop, .largest = largest},
                   RmspropStep{.learning_rate = 0.01f, .decay = 0.9f, .momentum = 0.8f, .epsilon = 0.1f}, {},
                   Slots{square, momentum});
    for (std::size_t i = 0; i < count; ++i) {
      const double g = gradient[i];
      CHECK(velocity[i] == Approx(0.9 * first0[i] + g).margin(1e-6));
      CHECK(update[i] == Approx(-0.1 * (0.9 * first0[i] + g)).margin(1e-6));
      const double m = 0.9 * first0[i] + 0.1 * g, v = 0.999 * second0[i] + 0.001 * g * g;
      CHECK(adam[i] ==
            Approx(-1e-3 * (m / 0.19) / (std::sqrt(v / 0.001999) + 1e-8)).epsilon(1e-4).margin(1e-9));
      const double mean = 0.9 * second0[i] + 0.1 * g * g;
      CHECK(square[i] == Approx(mean).margin(1e-6));
      CHECK(rmsprop[i] == Approx(-(0.8 * first0[i] + 0.01 * g / std::sqrt(mean + 0.1))).margin(1e-6));
      CHECK(momentum[i] == -rmsprop[i]);
    }
  }
}

TEST_CASE("adamw and adagrad follow their formulas on every instruction set", "[update]") {
  const std::vector<float> gradient = uniform_floats(count, -1, 1, 1),
                           before = uniform_floats(count, -2, 2, 4);
  const std::vector<float> first0 = uniform_floats(count, -1, 1, 2), second0 = uniform_floats(count, 0, 1, 3);
  const double rate = 0.01, decay = 0.1;
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    std::vector<std::uint32_t> largest(1);
    std::vector<float> first = first0, second = second0, decayed = before, sum = second0, adagrad = before;
    optimizer_step({.gradient = gradient, .weights = decayed, .largest = largest},
                   AdamwStep{adam_step(static_cast<float>(rate), 2), static_cast<float>(decay)}, {},
                   Slots{first, second});
    optimizer_step({.gradient = gradient, .weights = adagrad, .largest = largest},
                   AdagradStep{.learning_rate = static_cast<float>(rate), .epsilon = 0.125f}, {}, Slots{sum});
    for (std::size_t i = 0; i < count; ++i) {
      const double g = gradient[i], w = before[i];
      const double m = 0.9 * first0[i] + 0.1 * g, v = 0.999 * second0[i] + 0.001 * g * g;
      const double adam = rate * (m / 0.19) / (std::sqrt(v / 0.001999) + 1e-8);
      CHECK(decayed[i] == Approx(w * (1 - rate * decay) - adam).margin(1e-5));
      CHECK(sum[i] == Approx(second0[i] + g * g).margin(1e-6));
      CHECK(adagrad[i] == Approx(w - rate * g / (std::sqrt(second0[i] + g * g) + 0.125)).margin(1e-6));
    }
  }
}

TEST_CASE("adamw without decay is adam, and a decay shrinks a weight without a gradient", "[update]") {
  const std::vector<float> gradient = uniform_floats(count, -1, 1, 1), none(count);
  const AdamStep adam = adam_step(1e-3f, 1);
  for (const Quantizer& state : {Quantizer{}, Quantizer{.format = fp16}}) {
    const auto updated = [&](const UpdateRule& rule, const std::vector<float>& by) {
      std::vector<float> weights(count, 2), first(count), second(count);
      std::vector<std::uint32_t> largest(1);
      optimizer_step({.gradient = by, .weights = weights, .largest = largest}, rule, state,
                     Slots{first, second});
      return weights;
    };
    CHECK(updated(AdamwStep{adam, 0}, gradient) == updated(adam, gradient));
  }
  std::vector<float> weights(1, 2), first(1), second(1);
  std::vector<std::uint32_t> largest(1);
  optimizer_step({.gradient = std::span(none).first(1), .weights = weights, .largest = largest},
                 AdamwStep{adam_step(0.5f, 1), 0.25f}, {}, Slots{first, second});
  CHECK(weights[0] == 1.75f);
}

TEST_CASE("with FP16 state an epsilon of 1e-8 and a small square are zero, and 0 / 0 is NaN",
          "[update][known]") {
  const std::vector<float> gradient(4, 1e-4f);
  std::vector<float> first(4), second(4), weights(4);
  std::vector<std::uint32_t> largest(1);
  const WeightUpdate update{.gradient = gradient, .weights = weights, .largest = largest};
  const AdamStep step = adam_step(1e-5f, 1);
  optimizer_step(update, step, {.format = fp16}, Slots{first, second});
  CHECK(second[0] == 0.0f);
  CHECK_FALSE(std::isfinite(weights[0]));
  CHECK(largest[0] == magnitude_bits(weights[0]));
  CHECK_THROWS_AS(optimizer_step(update, step, parse_quantizer("fp16/stochastic"), Slots{first, second}),
                  InvalidArgument);
  CHECK_THROWS_AS(optimizer_step(update, SgdStep{}, {}, Slots{std::span(first).first(3)}), InvalidArgument);
  CHECK_THROWS_AS(optimizer_step(update, SgdStep{}, {}, Slots{first, second}), InvalidArgument);
}

}  // namespace
}  // namespace halfscope::optimizer_step_test
