// Autocast's cast cache: the gradients of a weight that is used at every time step add up in FP16, or without
// it in FP32.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <halfscope/kernel/reduce/reduce.hpp>

#include "experiments/ablations/experiments.hpp"
#include "experiments/ablations/language_model.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"
#include "sim/models/models.hpp"

namespace halfscope {
namespace cast_cache {
namespace {

constexpr const char* paper_statement =
    "No such experiment: the paper's weights are FP16 copies, whose gradients are FP16 as well.";

/// Words of a batch, whatever the length of its sequences.
constexpr std::int64_t words = 2048;
constexpr std::array<std::int64_t, 3> lengths{8, 32, 128};

/// Of FP32's perplexity, what separates harm from the noise between roundings.
constexpr double close = 0.02;

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
  const Model model = make_rnn_lm({.example_shape = {time}, .class_count = 512, .token_count = 512});
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
std::vector<AccumulationRow> sums_of_uses() {
  std::vector<AccumulationRow> rows;
  for (const std::int64_t time : lengths) {
    const std::vector<float> terms = gradients_of_uses(time);
    for (const std::string_view model : {"fp16_sequential", "fp32_sequential"})
      rows.push_back(measure(terms, time, model));
  }
  return rows;
}

struct Way {
  std::string_view name, summary, policy, cast_cache;
};
constexpr std::array ways{Way{"fp32", "everything in FP32", "fp32", "on"},
                          Way{"cached", "autocast", "autocast_cuda", "on"},
                          Way{"uncached", "autocast without its cast cache", "autocast_cuda", "off"}};

std::string arm_name(const Way& way, std::int64_t time) {
  return fmt::format("{}_t{}", way.name, time);
}

std::vector<Arm> arms() {
  std::vector<Arm> all;
  for (const std::int64_t time : lengths) {
    for (const Way& way : ways) {
      all.push_back({arm_name(way, time),
                     fmt::format("{} uses of each weight a step; {}", time, way.summary),
                     {{"sequence_length", std::to_string(time)},
                      {"batch", std::to_string(words / time)},
                      {"policy", std::string(way.policy)},
                      {"loss_scale", way.policy == "fp32" ? "none" : "1024"},
                      {"cast_cache", std::string(way.cast_cache)}}});
    }
  }
  return all;
}

std::vector<Expectation> expectations() {
  std::vector<Expectation> all;
  for (const std::int64_t time : lengths) {
    for (const Way& way : {ways[1], ways[2]})
      all.push_back({arm_name(way, time), arm_name(ways[0], time), Expected::as_good, close});
  }
  return all;
}

std::string verdict(const ExperimentSummary& summary) {
  std::string text;
  for (const std::int64_t time : lengths) {
    if (summary.find(arm_name(ways[0], time)) == nullptr) continue;
    text += fmt::format("{}At {} time steps: {}, {}.", text.empty() ? "" : " ", time,
                        against_baseline(summary, arm_name(ways[1], time), arm_name(ways[0], time)),
                        against_baseline(summary, arm_name(ways[2], time), arm_name(ways[0], time)));
  }
  return text.empty() ? "No length was run in FP32."
                      : text + " With the cast cache a weight's gradients of all time steps add up in FP16.";
}

}  // namespace
}  // namespace cast_cache

Experiment make_cast_cache() {
  using namespace cast_cache;
  return {.name = "cast-cache",
          .summary = "an RNN called step by step, 8 to 128 uses of a weight, with and without the cast cache",
          .paper = paper_statement,
          .claim = {"An FP16 sum over the uses of a weight trains as an FP32 sum does.", expectations()},
          .metric = test_perplexity(),
          .settings = with(language_model_settings(), {{"model", "rnn_lm"}}),
          .varied = {"policy", "loss_scale", "cast_cache", "sequence_length", "batch"},
          .arms = arms(),
          .quick_arms = {"fp32_t32", "cached_t32", "uncached_t32"},
          .quick_set = QuickSet::left_out,
          .accumulation = sums_of_uses,
          .verdict = verdict};
}

}  // namespace halfscope
