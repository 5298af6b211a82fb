// Layers of attention: rows in which nothing counts, exact zeros, and shapes that do not fit.
#include "sim/layers/attention.hpp"

#include "sim/layers/activations.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::attention_test {
namespace {

struct TapeOfOne {
  TrackerList none{};
  Caster caster;
  Tape tape;
  explicit TapeOfOne(const PrecisionPolicy& policy = {})
      : caster(policy, 0, none), tape(caster, Phase::training) {}
};

TEST_CASE("a softmax gives nothing to what is masked, and a row of nothing is uniform", "[attention]") {
  for (const PrecisionPolicy& policy : {fp32_policy(), fp16_mixed_policy()}) {
    TapeOfOne one(policy);
    constexpr float out = -1e4f;
    const TensorRef x = one.tape.input("x", Array::from({3, 4}, {1, 2, 3, 4, 8, 8, -8, 8, 5, 5, 5, 5}));
    const Array mask = Array::from({3, 4}, {0, out, 0, out, out, out, 0, out, out, out, out, out});
    const Array& y = one.tape.value(masked_softmax(one.tape, "y", x, mask));
    CHECK(y[1] == 0);
    CHECK(y[3] == 0);
    CHECK(y[0] + y[2] == Approx(1).epsilon(1e-3));
    // The only one that counts has it all, though its score is the lowest.
    CHECK(std::vector<float>(y.data() + 4, y.data() + 8) == std::vector<float>{0, 0, 1, 0});
    CHECK(std::vector<float>(y.data() + 8, y.data() + 12) == std::vector<float>(4, 0.25f));
  }
}

TEST_CASE("GELU passes large numbers on and stops small ones, in both forms", "[attention]") {
  for (const Gelu form : {Gelu::erf, Gelu::tanh}) {
    TapeOfOne one;
    const TensorRef x = one.tape.input("x", Array::from({5}, {-100, -1, 0, 1, 100}));
    const Array& y = one.tape.value(gelu(one.tape, "y", x, form));
    CHECK(y[0] == 0);
    CHECK(y[1] ==
          Approx(-0.158655).margin(2e-4));  // from the normal distribution; the forms differ by 1.5e-4
    CHECK(y[2] == 0);
    CHECK(y[3] == Approx(0.841345).margin(2e-4));
    CHECK(y[4] == 100);
  }
}

TEST_CASE("products of tensors say which shapes do not fit", "[attention]") {
  TapeOfOne one;
  const auto tensor = [&](Shape shape) { return one.tape.input("x", Array::zeros(std::move(shape))); };
  const auto refusal = [&](Shape a, Shape b, Operand second) {
    return message_of<InvalidArgument>([&] {
      (void)batched_matmul(one.tape, "scores", tensor(std::move(a)), tensor(std::move(b)), second);
    });
  };
  check_says(refusal({2, 3, 4}, {2, 5, 6}, Operand::plain),
             {"layer scores", "(2, 3, 4)", "(2, 5, 6)", "(batch, inner, columns)"});
  check_says(refusal({2, 3, 4}, {2, 4, 5}, Operand::transposed),
             {"the transposed", "(batch, columns, inner)"});
  check_says(refusal({2, 3, 4}, {3, 4, 5}, Operand::plain), {"(3, 4, 5)"});
  check_says(refusal({2, 3, 4}, {4, 5}, Operand::plain), {"(4, 5)"});
  CHECK(one.tape
            .value(batched_matmul(one.tape, "y", tensor({2, 7, 3, 4}), tensor({2, 7, 5, 4}),
                                  Operand::transposed))
            .shape() == Shape{2, 7, 3, 5});
  check_says(message_of<InvalidArgument>([&] {
               (void)masked_softmax(one.tape, "weights", tensor({2, 3}), Array::zeros({3}));
             }),
             {"layer weights", "(3)", "(2, 3)"});
}

}  // namespace
}  // namespace halfscope::attention_test
