// Softmax with cross entropy against its definition, bit for bit, on every instruction set.
#include "lib/nn/softmax.hpp"

#include <algorithm>
#include <limits>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/core/isa.hpp>
#include <halfscope/format/bits.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::softmax_test {
namespace {

struct Softmax {
  std::vector<float> probability, loss;
};

/// The definition, one row after the other.
Softmax defined(const std::vector<float>& logits, const std::vector<std::int32_t>& labels,
                const AccumulateModel& model) {
  const std::size_t classes = logits.size() / labels.size();
  Softmax result;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    const float* x = logits.data() + r * classes;
    const float largest = *std::max_element(x, x + classes);
    std::vector<float> p;
    for (std::size_t c = 0; c < classes; ++c) p.push_back(exp(x[c] - largest));
    const float sum = accumulate(p, model);
    for (const float value : p) result.probability.push_back(value / sum);
    result.loss.push_back(log(sum) - (x[static_cast<std::size_t>(labels[r])] - largest));
  }
  return result;
}

std::size_t different(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t count = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += to_bits(a[i]) != to_bits(b[i]);
  return count;
}

void compare(std::size_t rows, std::size_t classes, const AccumulateModel& model) {
  const std::vector<float> logits = uniform_floats(rows * classes, -3, 3, rows + classes);
  std::vector<std::int32_t> labels;
  for (std::size_t r = 0; r < rows; ++r) labels.push_back(static_cast<std::int32_t>(r * 7919 % classes));
  const Softmax expected = defined(logits, labels, model);
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 2}) {
      const ForcedIsa forced(isa);
      const Threads several(threads);
      INFO(rows << " rows of " << classes << ", " << to_string(model) << ", " << name_of(isa) << ", "
                << threads << " threads");
      Softmax got{std::vector<float>(logits.size()), std::vector<float>(rows)};
      softmax_cross_entropy(logits, labels, model, got.probability, got.loss);
      CHECK(different(got.probability, expected.probability) == 0);
      CHECK(different(got.loss, expected.loss) == 0);
    }
  }
}

TEST_CASE("softmax equals its definition for every order of the sum", "[softmax]") {
  for (const char* name : {"fp32_chunked(256)", "fp32_sequential", "fp16_sequential", "fp16_chunked(64)",
                           "fp16_pairwise", "fp32_kahan", "bf16_sequential", "fp32_chunked(1)"}) {
    const AccumulateModel model = parse_accumulate_model(name);
    for (const std::size_t rows : {1u, 15u, 16u, 33u}) {
      for (const std::size_t classes : {1u, 10u, 31u, 300u}) compare(rows, classes, model);
    }
    compare(18, 4099, model);
  }
}

TEST_CASE("softmax's sequential FP16 sum of a near-uniform row of 32,768 comes out far too small",
          "[softmax][known]") {
  const std::vector<float> logits(32768, 0.5f);
  const std::vector<std::int32_t> labels{7};
  std::vector<float> p(logits.size()), loss(1);
  softmax_cross_entropy(logits, labels, parse_accumulate_model("fp16_sequential"), p, loss);
  CHECK(p[0] == 1.0f / 2048);  // 2048 + 1 is a tie in FP16 and stays 2048
  softmax_cross_entropy(logits, labels, parse_accumulate_model("fp32_chunked(256)"), p, loss);
  CHECK(p[0] == 1.0f / 32768);
}

TEST_CASE("a row with an infinity or a NaN is NaN, the others are not touched", "[softmax]") {
  for (const float bad : {INFINITY, std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t where : {0u, 20u, 40u}) {
      std::vector<float> logits = uniform_floats(3 * 41, -1, 1, 5);
      logits[41 + where] = bad;
      const std::vector<std::int32_t> labels{1, 2, 3};
      for (const Isa isa : available_isas()) {
        const ForcedIsa forced(isa);
        std::vector<float> p(logits.size()), loss(3);
        softmax_cross_entropy(logits, labels, parse_accumulate_model("fp32_chunked(256)"), p, loss);
        CHECK(std::isnan(p[41 + where]));
        CHECK(std::isnan(loss[1]));
        CHECK((std::isfinite(loss[0]) && std::isfinite(loss[2])));
      }
    }
  }
}

TEST_CASE("softmax's gradient is the probability less one at the label, times the factor", "[softmax]") {
  std::vector<float> p{0.25f, 0.75f, 0.5f, 0.5f};
  const std::vector<float> numerator{24};
  softmax_cross_entropy_gradient(std::vector<std::int32_t>{1, 0}, {numerator, 3}, p);
  CHECK(p == std::vector<float>{2.0f, -2.0f, -4.0f, 4.0f});
}

TEST_CASE("softmax says which label or size is wrong", "[softmax]") {
  std::vector<float> x(6), p(6), loss(2);
  const AccumulateModel model;
  check_says(message_of<InvalidArgument>([&] {
               softmax_cross_entropy(x, std::vector<std::int32_t>{0, 3}, model, p, loss);
             }),
             {"label 3", "row 1", "[0, 3)"});
  std::vector<float> small(5);
  CHECK_THROWS_AS(softmax_cross_entropy(x, std::vector<std::int32_t>{0, 1}, model, small, loss),
                  InvalidArgument);
  CHECK_THROWS_AS(softmax_cross_entropy(x, std::vector<std::int32_t>{0, 1},
                                        parse_accumulate_model("tensor_core(hopper)"), p, loss),
                  InvalidArgument);
}

}  // namespace
}  // namespace halfscope::softmax_test
