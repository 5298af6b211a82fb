// CTC whose path likelihoods are in FP16, beside FP32, by the length of utterances.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>

#include <halfscope/arithmetic/normal.hpp>

#include "experiments/analyses/analyses.hpp"
#include "sim/layers/losses.hpp"

namespace halfscope {
namespace ctc {
namespace {

/// Four utterances of one length.
struct CtcPrecisionRow {
  std::int64_t frames = 0, labels = 0;
  double deviation = 0;  ///< standard deviation of the logits
  double loss = 0, fp16_loss = 0;
  double gradient_error = 0;  ///< distance of the gradients over the length of FP32's
  double cosine = 0;          ///< cosine of the angle between the gradients
};

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

/// CTC loss and gradient with path likelihoods stored in `model`'s format.
LossAndGradient ctc_of(const Array& logits, const LabelSequences& targets, const AccumulateModel& model) {
  PrecisionPolicy policy;
  policy.reductions.model = model;
  TrackerList none;
  Caster caster(policy, 0, none);
  Tape tape(caster, Phase::training);
  ParameterStore store;
  Parameter& x = store.add("logits", logits.clone());
  const TensorRef loss = ctc_loss(tape, "ctc", tape.operation("input", x.name).parameter(x), targets);
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

std::vector<CtcPrecisionRow> table_rows() {
  std::vector<CtcPrecisionRow> rows;
  for (const float deviation : {0.1f, 3.0f}) {
    for (const Length& length : utterance_lengths) rows.push_back(measure(length, deviation));
  }
  return rows;
}

std::vector<Cell> cells_of(const CtcPrecisionRow& row) {
  return {count_cell(row.frames),
          count_cell(row.labels),
          {fmt::format("+-{:.1f}", row.deviation), row.deviation},
          {fmt::format("{:.1f}", row.loss), row.loss},
          {fmt::format("{:.1f}", row.fp16_loss), row.fp16_loss},
          {fmt::format("{:.2g}", row.gradient_error), row.gradient_error},
          {fmt::format("{:.3f}", row.cosine), row.cosine}};
}

}  // namespace
}  // namespace ctc

AnalysisResult find_ctc(const AnalysisInput& /*input*/) {
  Table table{{{"frames", "frames"},
               {"labels", "labels"},
               {"deviation", "logits"},
               {"loss", "loss"},
               {"fp16_loss", "in FP16"},
               {"gradient_error", "gradient's error"},
               {"cosine", "cosine"}},
              {}};
  for (const auto& row : ctc::table_rows()) table.rows.push_back(ctc::cells_of(row));
  AnalysisResult finding{.key = "ctc", .values = rows_json(table)};
  finding.sections.push_back(
      {.heading = "CTC with path likelihoods in FP16, beside FP32", .table = std::move(table)});
  return finding;
}

}  // namespace halfscope
