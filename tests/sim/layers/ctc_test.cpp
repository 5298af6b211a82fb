// CTC at its edges: padding, NaN, impossible targets, FP16 inside, threads.
#include <algorithm>
#include <cmath>

#include <halfscope/arithmetic/normal.hpp>

#include "sim/layers/layers.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::ctc_test {
namespace {

using Labels = std::vector<std::int32_t>;

struct LossAndGradient {
  float loss = 0;
  Array gradient;
};

LossAndGradient ctc_of(const Array& logits, const LabelSequences& targets, const PrecisionPolicy& policy = {},
                       Phase phase = Phase::training) {
  TrackerList none;
  Caster caster(policy, 0, none);
  Tape tape(caster, phase);
  ParameterStore store;
  Parameter& x = store.add("x", logits.clone());
  const TensorRef loss = ctc_loss(tape, "ctc", leaf(tape, x), targets);
  if (phase == Phase::training) tape.backward(loss, 1.0f);
  return {tape.value(loss).item(), x.gradient.clone()};
}

/// `count` labels from 1 to `largest`, no two neighbours equal.
Labels labels_without_repeats(std::int32_t count, std::int32_t largest) {
  Labels labels;
  for (std::int32_t i = 0; i < count; ++i) labels.push_back(1 + (i * 7 + i / largest) % largest);
  for (std::size_t i = 1; i < labels.size(); ++i)
    if (labels[i] == labels[i - 1]) labels[i] = labels[i] % largest + 1;
  return labels;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double both = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    of_a += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    of_b += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return both / std::sqrt(of_a * of_b);
}

TEST_CASE("padding changes no bit of an utterance's loss, and gets no gradient", "[ctc]") {
  const Labels labels{2, 1, 3}, counts{3};
  const Array alone = uniform_array({6, 1, 5}, -3, 3, 1);
  Array padded = uniform_array({9, 1, 5}, -3, 3, 2);
  std::ranges::copy(alone.values(), padded.data());
  const LossAndGradient a = ctc_of(alone, {Labels{6}, counts, labels}),
                        b = ctc_of(padded, {Labels{6}, counts, labels});
  CHECK(a.loss == b.loss);
  CHECK(std::ranges::equal(a.gradient.values(), b.gradient.values().first(30)));
  CHECK(std::ranges::all_of(b.gradient.values().subspan(30), [](float g) { return g == 0; }));
}

TEST_CASE("the gradient of a frame's logits adds up to zero", "[ctc]") {
  const LossAndGradient result = ctc_of(uniform_array({40, 2, 6}, -4, 4, 3),
                                        {Labels{40, 31}, Labels{9, 4}, labels_without_repeats(13, 5)});
  for (std::size_t frame = 0; frame < 80; ++frame) {
    double sum = 0;
    for (std::size_t k = 0; k < 6; ++k) sum += static_cast<double>(result.gradient[frame * 6 + k]);
    CHECK(std::abs(sum) < 2e-5);
  }
}

TEST_CASE("CTC gives the same bits on any number of threads", "[ctc]") {
  const Array logits = uniform_array({30, 7, 9}, -2, 2, 4);
  const Labels frames{30, 29, 11, 30, 5, 17, 30}, counts{5, 0, 3, 8, 1, 2, 6};
  const Labels labels = labels_without_repeats(25, 8);
  const LossAndGradient one = ctc_of(logits, {frames, counts, labels});
  const Threads several(3);
  const LossAndGradient three = ctc_of(logits, {frames, counts, labels});
  CHECK(one.loss == three.loss);
  CHECK(std::ranges::equal(one.gradient.values(), three.gradient.values()));
}

TEST_CASE("a NaN or an infinity among the logits reaches the loss", "[ctc]") {
  for (const float bad : {NAN, INFINITY}) {
    for (std::size_t at = 0; at < 12; ++at) {
      Array logits = uniform_array({4, 1, 3}, -1, 1, 5);
      logits[at] = bad;
      CHECK_FALSE(std::isfinite(ctc_of(logits, {Labels{4}, Labels{1}, Labels{2}}).loss));
    }
  }
}

TEST_CASE("logits far apart make no NaN", "[ctc]") {
  Array logits = Array::zeros({4, 1, 3});
  for (std::size_t t = 0; t < 4; ++t) logits[t * 3 + 1] = 60000;  // label 1 everywhere, while 2 was said
  const LossAndGradient result = ctc_of(logits, {Labels{4}, Labels{1}, Labels{2}});
  CHECK(result.loss == Approx(240000 - std::log(10)).margin(0.05));  // ten runs of frames for the label
  CHECK(std::ranges::all_of(result.gradient.values(), [](float g) { return std::isfinite(g); }));
}

/// FP16 path likelihoods in the layer called "ctc", everything else in FP32.
PrecisionPolicy fp16_paths() {
  PrecisionPolicy policy;
  policy.reductions = parse_scoped_accumulate("fp16_sequential@ctc");
  return policy;
}

/// Four utterances of as many frames and labels, with logits that hardly differ.
double cosine_of_gradients(std::int32_t time, std::int32_t count) {
  Array logits({time, 4, 29});
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = 0.1f * normal_pair({0, 0, 1}, i)[0];
  const Labels frames(4, time), counts(4, count), labels = labels_without_repeats(4 * count, 28);
  const LossAndGradient exact = ctc_of(logits, {frames, counts, labels}),
                        half = ctc_of(logits, {frames, counts, labels}, fp16_paths());
  CHECK(half.loss == Approx(exact.loss).epsilon(0.01));
  return cosine(exact.gradient.values(), half.gradient.values());
}

TEST_CASE("path likelihoods in FP16 keep the loss and, of long utterances, lose the gradient", "[ctc]") {
  CHECK(cosine_of_gradients(56, 14) > 0.99);
  CHECK(cosine_of_gradients(75, 20) > 0.99);
  CHECK(cosine_of_gradients(400, 100) < 0.5);
}

TEST_CASE("an evaluation measures in FP32, and the rule is the named layer's alone", "[ctc]") {
  const Array logits = uniform_array({60, 1, 9}, -2, 2, 7);
  const Labels frames{60}, counts{20}, labels = labels_without_repeats(20, 8);
  const LabelSequences targets{frames, counts, labels};
  const float exact = ctc_of(logits, targets).loss;
  CHECK(ctc_of(logits, targets, fp16_paths()).loss != exact);
  CHECK(ctc_of(logits, targets, fp16_paths(), Phase::evaluation).loss == exact);
  PrecisionPolicy elsewhere;
  elsewhere.reductions = parse_scoped_accumulate("fp16_sequential@softmax");
  CHECK(ctc_of(logits, targets, elsewhere).loss == exact);
}

TEST_CASE("CTC says which targets do not fit", "[ctc]") {
  const auto message = [](const Labels& frames, const Labels& counts, const Labels& labels) {
    return message_of<InvalidArgument>([&] {
      (void)ctc_of(Array::zeros({4, 2, 3}), {frames, counts, labels});
    });
  };
  check_says(message({4, 4}, {1, 3}, {1, 2, 2, 2}), {"utterance 1", "4 frames", "3 labels", "need 5"});
  check_says(message({4, 1}, {1, 2}, {1, 1, 2}), {"utterance 1", "1 frames", "need 2"});
  check_says(message({4, 5}, {1, 1}, {1, 2}), {"utterance 1", "5 frames", "1 to 4"});
  check_says(message({0, 4}, {0, 1}, {1}), {"utterance 0", "0 frames"});
  check_says(message({4, 4}, {1, 1}, {3, 1}), {"label 3", "utterance 0", "[1, 3)"});
  check_says(message({4, 4}, {1, 1}, {1, 0}), {"label 0", "utterance 1"});
  check_says(message({4, 4}, {1, 2}, {1, 2}), {"sizes", "differ"});
  check_says(message({4}, {1, 1}, {1, 2}), {"sizes", "differ"});
  check_says(message({4, 4}, {-1, 1}, {1}), {"-1 labels"});
}

}  // namespace
}  // namespace halfscope::ctc_test
