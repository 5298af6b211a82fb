// Evaluations, and a first look at the data.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <numeric>

#include "sim/tape/kept_buffers.hpp"
#include "sim/train/rule_check.hpp"
#include "sim/train/trainer.hpp"

namespace halfscope {
namespace {

/// Examples per forward pass of an evaluation: fewer of large images, since a tape keeps every layer's
/// output.
std::int64_t evaluation_batch(const Dataset& dataset) {
  constexpr std::int64_t most_examples = 200, most_elements = 1 << 18;
  const auto elements = static_cast<std::int64_t>(element_count(dataset.example_shape()));
  return std::clamp<std::int64_t>(most_elements / elements, 1, most_examples);
}

}  // namespace

StepContext Trainer::evaluation_context() const {
  return {.step = steps_done_, .execution = settings_.execution, .operand_scales = &operand_scales_};
}

void Trainer::try_example() {
  const DeviceScope scope(settings_.device);
  caster_.begin_step(evaluation_context());
  const std::array<std::int64_t, 1> first{0};
  {
    Tape tape(caster_, Phase::evaluation);
    const Batch batch = read_batch(Split::test, first);
    const BatchOutcome outcome = model_.forward(tape, batch);
    if (settings_.second) (void)label_logits(tape, outcome, batch);
  }
  const std::int64_t segments = settings_.config.checkpoint_segments;
  const bool has_rules = !settings_.policy.rules.empty() || !settings_.own_operands.empty();
  if (settings_.policy.allows_all() && !has_rules && segments <= 1) return;
  const KeptBuffers running_statistics(stores());
  std::deque<Tape> tapes;
  std::vector<TapeEntry> entries;
  for (const Learner& learner : learners_) {
    Tape& tape = tapes.emplace_back(caster_, Phase::training, TapeOptions{.segments = segments});
    (void)learner.loss().of(tape, read_batch(Split::train, first));
    std::ranges::copy(tape.entries(), std::back_inserter(entries));
  }
  check_rules_apply(settings_.policy.rules, entries);
  check_rules_apply(settings_.own_operands, entries);
  const auto is_dropped = [](const TapeEntry& entry) { return entry.segment > 0; };
  if (segments > 1 && std::ranges::none_of(entries, is_dropped)) {
    throw InvalidArgument(fmt::format(
        "checkpoint_segments = {}: model {} is no chain of blocks; resnet18, resnet50 and bert are", segments,
        settings_.config.model));
  }
}

std::int64_t Trainer::evaluated_examples() const {
  const std::int64_t all = dataset_.size(Split::test), most = settings_.config.evaluation.examples;
  return most == 0 ? all : std::min(most, all);
}

template <typename Use>
void Trainer::each_test_batch(const Use& use) const {
  const std::int64_t size = evaluated_examples(), batch_size = evaluation_batch(dataset_);
  for (std::int64_t first = 0; first < size; first += batch_size) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(batch_size, size - first)));
    std::iota(indices.begin(), indices.end(), first);
    use(read_batch(Split::test, indices), static_cast<double>(indices.size()));
  }
}

Evaluation Trainer::evaluate() {
  const DeviceScope scope(settings_.device);
  caster_.begin_step(evaluation_context());
  double loss = 0;
  const std::unique_ptr<Metric> metric = model_.make_metric();
  each_test_batch([&](const Batch& batch, double examples) {
    Tape tape(caster_, Phase::evaluation);
    const BatchOutcome outcome = model_.forward(tape, batch);
    metric->add(tape, outcome, batch);
    loss += static_cast<double>(tape.value(outcome.loss).item()) * examples;
  });
  loss /= static_cast<double>(evaluated_examples());
  return {loss, metric->value(), metric->accuracy(), metric->samples()};
}

std::optional<LogProbabilityGap> Trainer::compare_executions() {
  if (!settings_.second) return std::nullopt;
  const DeviceScope scope(settings_.device);
  TrackerList nobody;
  Caster second(*settings_.second, static_cast<std::uint64_t>(settings_.config.seed), nobody);
  for (Caster* caster : {&caster_, &second}) caster->begin_step(evaluation_context());
  const auto under = [&](Caster& caster, const Batch& batch) {
    Tape tape(caster, Phase::evaluation);
    const BatchOutcome outcome = model_.forward(tape, batch);
    return label_logits(tape, outcome, batch);
  };
  LogProbabilityGaps gaps;
  each_test_batch([&](const Batch& batch, double) { gaps.add(under(caster_, batch), under(second, batch)); });
  return gaps.gap();
}

}  // namespace halfscope
