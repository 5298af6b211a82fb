// Losses and gradients of CTC in two formats.
#include "experiments/ablations/ctc_table.hpp"

#include <array>
#include <cmath>

#include <halfscope/arithmetic/normal.hpp>

#include "sim/layers/losses.hpp"

namespace halfscope {
namespace {

constexpr std::int64_t utterances = 4;
constexpr std::int32_t labels = 29;

struct Length {
  std::int32_t frames, labels;
};
constexpr std::array<Length, 6> utterance_lengths{
    {{56, 14}, {75, 20}, {100, 30}, {200, 60}, {400, 100}, {800, 200}}};

struct LossAndGradient {
  double loss = 0;
  Array gradient;
};

/// Of path likelihoods that are stored as `model`'s format.
LossAndGradient ctc_of(const Array& logits, const LabelSequences& targets, const AccumulateModel& model) {
  PrecisionPolicy policy;
  policy.reductions.model = model;
  TrackerList none;
  Caster caster(policy, 0, none);
  Tape tape(caster, Phase::training);
  ParameterStore store;
  Parameter& x = store.add("logits", logits.clone());
  const TensorRef loss = ctc_loss(tape, "ctc", tape.parameter(x), targets);
  tape.backward(loss, 1.0f);
  return {static_cast<double>(tape.value(loss).item()), std::move(x.gradient)};
}

double product(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

CtcPrecisionRow measure(const Length& length, float deviation) {
  Array logits({length.frames, utterances, labels});
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = deviation * normal_pair({0, 0, 1}, i)[0];
  std::vector<std::int32_t> spoken;
  const RandomStream stream{0, 0, 2};
  for (std::int64_t i = 0; i < utterances * length.labels; ++i) {
    const auto place = static_cast<std::uint64_t>(i);
    spoken.push_back(1 + static_cast<std::int32_t>(stream.bits(place) % (labels - 1)));
  }
  const std::vector<std::int32_t> frames(utterances, length.frames), counts(utterances, length.labels);
  const LabelSequences targets{frames, counts, spoken};
  const LossAndGradient exact = ctc_of(logits, targets, parse_accumulate_model("fp32_sequential")),
                        half = ctc_of(logits, targets, parse_accumulate_model("fp16_sequential"));
  const auto a = exact.gradient.values(), b = half.gradient.values();
  const double of_a = product(a, a), of_b = product(b, b), both = product(a, b);
  return {.frames = length.frames,
          .labels = length.labels,
          .deviation = static_cast<double>(deviation),
          .loss = exact.loss,
          .fp16_loss = half.loss,
          .gradient_error = std::sqrt((of_a - 2 * both + of_b) / of_a),
          .cosine = both / std::sqrt(of_a * of_b)};
}

}  // namespace

std::vector<CtcPrecisionRow> ctc_precision_table() {
  std::vector<CtcPrecisionRow> rows;
  for (const float deviation : {0.1f, 3.0f}) {
    for (const Length& length : utterance_lengths) rows.push_back(measure(length, deviation));
  }
  return rows;
}

}  // namespace halfscope
