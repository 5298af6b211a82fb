// Sums over the uses of a weight: gradients of an RNN's recurrent weight, one for each time step, added up in
// FP16 as with autocast's cast cache, and in FP32 as without it.
#include <algorithm>
#include <array>
#include <cmath>

#include <halfscope/kernel/reduce/reduce.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/sums_table.hpp"
#include "sim/models/models.hpp"

namespace halfscope {
namespace uses_of_weights {
namespace {

/// Words of a batch, whatever the length of its sequences.
constexpr std::int64_t words = 2048;
constexpr std::array<std::int64_t, 3> lengths{8, 32, 128};

/// Keeps the gradient that each use of a weight gives it.
class UseGradients final : public Tracker {
 public:
  explicit UseGradients(std::vector<float>& terms) : terms_(terms) {}
  [[nodiscard]] CastDetail watches_casts(Role role) const override {
    return role == Role::weight_gradient ? CastDetail::counters : CastDetail::none;
  }
  void on_cast(const CastEvent& event, StepObservations&) override {
    if (event.site.tensor != "rnn.hidden_weight") return;
    terms_.insert(terms_.end(), event.after.begin(), event.after.end());
  }

 private:
  std::vector<float>& terms_;
};

/// (time steps, weights): the gradients of the recurrent weight of an RNN with drawn weights for random
/// words, one for each time step from the last, without a cast cache.
std::vector<float> gradients_of_uses(std::int64_t time) {
  const Model model = rnn_lm_kind.make({.example_shape = {time}, .class_count = 512, .token_count = 512});
  const auto draw = [&](std::uint32_t site) {
    std::vector<std::int32_t> tokens;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(words); ++i)
      tokens.push_back(static_cast<std::int32_t>(RandomStream{0, 0, site}.bits(i) % 512));
    return tokens;
  };
  Batch batch;
  batch.tokens = draw(1);
  batch.labels = draw(2);
  std::vector<float> terms;
  TrackerList trackers;
  trackers.push_back(std::make_unique<UseGradients>(terms));
  PrecisionPolicy policy = autocast_cuda_policy();
  policy.cast_cache = CastCache::off;
  Caster caster(policy, 0, trackers);
  StepObservations unused;
  constexpr float scale = 1024;
  caster.begin_step({.step = 1, .loss_scale = scale, .observations = &unused});
  Tape tape(caster, Phase::training);
  tape.backward(model.forward(tape, batch).loss, scale);
  caster.events().collect();
  return terms;
}

AccumulationRow measure(const std::vector<float>& terms, std::int64_t time, std::string_view model) {
  const std::int64_t weights = std::ssize(terms) / time;
  std::vector<float> sums(static_cast<std::size_t>(weights));
  const ReductionCounters counters =
      counted_column_sums({.term = Term::value, .x = terms.data(), .rows = time, .columns = weights},
                          parse_accumulate_model(model), sums);
  std::vector<double> errors;
  for (std::size_t w = 0; w < sums.size(); ++w) {
    double exact = 0, magnitude = 0;
    for (std::size_t i = w; i < terms.size(); i += sums.size()) {
      exact += static_cast<double>(terms[i]);
      magnitude += std::fabs(static_cast<double>(terms[i]));
    }
    if (magnitude > 0) errors.push_back(std::fabs(static_cast<double>(sums[w]) - exact) / magnitude);
  }
  std::sort(errors.begin(), errors.end());
  return {.terms = "gradients of an RNN's weight, one for each time step",
          .model = std::string(model),
          .count = time,
          .relative_error = errors[errors.size() / 2],
          .overflowed = static_cast<double>(counters.overflowed) / static_cast<double>(weights),
          .stagnated = static_cast<double>(counters.stagnated) / static_cast<double>(weights * time)};
}

/// With the cache, FP16; without, FP32.
std::vector<AccumulationRow> table_rows() {
  std::vector<AccumulationRow> rows;
  for (const std::int64_t time : lengths) {
    const std::vector<float> terms = gradients_of_uses(time);
    for (const std::string_view model : {"fp16_sequential", "fp32_sequential"})
      rows.push_back(measure(terms, time, model));
  }
  return rows;
}

}  // namespace
}  // namespace uses_of_weights

AnalysisResult find_uses_of_weights(const AnalysisInput& /*input*/) {
  return accumulation_finding(uses_of_weights::table_rows());
}

}  // namespace halfscope
