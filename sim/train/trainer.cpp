// The training loop's body.
#include "sim/train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "sim/tape/kept_buffers.hpp"
#include "sim/train/observation_exchange.hpp"
#include "sim/train/operand_step.hpp"
#include "sim/train/processes.hpp"

namespace halfscope {
namespace {

bool is_due(std::int64_t every, std::int64_t step) {
  return every > 0 && (step == 1 || step % every == 0);
}

/// The measures that the record of a loss's gradients needs.
GradientMeasure measure_of(const RunSettings& settings, const ObjectiveRecord& record) {
  GradientMeasure measure{.largest = record.gradients.has_value()};
  if (settings.config.clip_norm > 0) {
    const bool unscaled = settings.clipped_gradients == ClippedGradients::unscaled;
    measure.norm_after = unscaled ? static_cast<float>(1 / record.scale) : 1.0f;
  }
  return measure;
}

void note(const StepScalars& scalars, GradientDetail detail, ObjectiveRecord& record) {
  record.loss = scalars.loss;
  if (!record.gradients) return;
  record.gradients->finite = std::isfinite(scalars.largest);
  if (detail >= GradientDetail::max_abs) record.gradients->max_abs = scalars.largest;
}

template <typename Value>
Value* pointer_to(std::optional<Value>& value) {
  return value ? &*value : nullptr;
}

std::uint64_t seed_of(const RunSettings& settings) {
  return static_cast<std::uint64_t>(settings.config.seed);
}

StepGradients as_seen(const GradientRecord& record) {
  return {.finite = record.finite,
          .max_abs = record.max_abs.value_or(0),
          .histogram = record.histogram ? &*record.histogram : nullptr};
}

/// Gradients of several losses as one scaler sees them.
class CombinedGradients {
 public:
  void add(const GradientRecord& record) {
    const StepGradients own = as_seen(record);
    sum_.finite = sum_.finite && own.finite;
    sum_.max_abs = std::max(sum_.max_abs, own.max_abs);
    if (own.histogram == nullptr) return;
    histogram_.merge(*own.histogram);
    sum_.histogram = &histogram_;
  }
  [[nodiscard]] const StepGradients& sum() const { return sum_; }

 private:
  StepGradients sum_{};
  ExponentHistogram histogram_{};
};

void move_to(Device device, ParameterStore& store) {
  for (Parameter& parameter : store.parameters) parameter.master = parameter.master.to(device);
  for (Buffer& buffer : store.buffers) buffer.value = buffer.value.to(device);
}

/// Adds probes to those of the same scales that an earlier loss of the step has left.
void add_probes(std::vector<ScaleProbe>& probes, std::vector<ScaleProbe> more) {
  if (probes.empty()) return probes.swap(more);
  for (std::size_t i = 0; i < probes.size(); ++i)
    std::ranges::move(more[i].weight_gradients, std::back_inserter(probes[i].weight_gradients));
}

/// Where a record keeps what is known of one loss.
void add_to(StepRecord& record, ObjectiveRecord own, bool first) {
  if (!first) return record.further.push_back(std::move(own));
  record.loss = own.loss;
  record.scale = own.scale;
  record.skipped = own.skipped;
  record.gradients = std::move(own.gradients);
  record.all_reduce = own.all_reduce;
}

}  // namespace

Trainer::Trainer(const RunSettings& settings, const Dataset& dataset)
    : settings_(settings),
      dataset_(dataset),
      trackers_(make_trackers(settings, WatchedSteps::observed)),
      overflow_trackers_(make_trackers(settings, WatchedSteps::overflowed)),
      caster_(settings.policy, seed_of(settings), trackers_),
      model_(make_model(settings, dataset)),
      scalers_(make_loss_scalers(settings, 1 + model_.further.size())),
      detail_(std::max({scalers_.front()->needs(), settings.recorded_gradients,
                        overflow_trackers_.empty() ? GradientDetail::none : GradientDetail::finite})),
      sampler_(dataset.size(Split::train), settings.config.batch, seed_of(settings), dataset.batch_order()) {
  const DeviceScope scope(settings_.device);
  for (ParameterStore* store : stores()) move_to(settings_.device, *store);
  if (model_.teacher) move_to(settings_.device, *model_.teacher);
  learners_.emplace_back(
      settings_,
      NamedLoss{"", [forward = model_.forward](Tape& tape,
                                               const Batch& batch) { return forward(tape, batch).loss; }},
      *model_.store, stores());
  for (const Objective& objective : model_.further)
    learners_.emplace_back(settings_, NamedLoss{objective.name, objective.loss}, *objective.store, stores());
  store_weights();
}

std::vector<ParameterStore*> Trainer::stores() {
  std::vector<ParameterStore*> all{model_.store.get()};
  for (const Objective& objective : model_.further) all.push_back(objective.store.get());
  return all;
}

Batch Trainer::read_batch(Split split, std::span<const std::int64_t> indices) const {
  const DeviceScope here(Device::cpu);
  return dataset_.batch(split, indices);
}

StepRecord Trainer::step() {
  const DeviceScope scope(settings_.device);
  StepRecord record{.step = steps_done_ + 1};
  record.learning_rate = learning_rate(settings_, steps_done_);
  follow_policy(record.step);
  if (is_due(settings_.config.observe_every, record.step)) record.observations.emplace();
  const std::vector<Batch> batches = read_batches();
  for (std::size_t i = 0; i < learners_.size() && !record.diverged; ++i) learn(i, batches, record);
  update_scalers(record);
  end_step(operand_scales_, operand_maxima_);
  ++steps_done_;
  return record;
}

void Trainer::follow_policy(std::int64_t step) {
  if (settings_.later && step >= settings_.later->step) caster_.use(settings_.later->policy);
}

void Trainer::learn(std::size_t index, const std::vector<Batch>& batches, StepRecord& record) {
  Learner& learner = learners_[index];
  const LossScaler& scaler = scaler_of(index);
  for (const Learner& other : learners_) {
    for (Parameter& parameter : other.store().parameters) parameter.frozen = &other != &learner;
  }
  ObjectiveRecord own{.name = learner.loss().name, .scale = scaler.scale()};
  if (detail_ > GradientDetail::none) own.gradients.emplace();
  if (detail_ == GradientDetail::histogram) own.gradients->histogram.emplace();
  const StepContext context{
      .step = record.step,
      .loss_scale = own.scale,
      .observations = pointer_to(record.observations),
      .weight_gradients = own.gradients ? pointer_to(own.gradients->histogram) : nullptr,
      .layerwise = layerwise_of(scaler, caster_.policy()),
      .execution = settings_.execution,
      .operand_scales = &operand_scales_,
      .operand_maxima = &operand_maxima_};
  const RepeatStep again = [&](Caster& caster, double scale) { repeat(learner, caster, scale, batches); };
  if (settings_.probes && is_due(settings_.config.probes.every, record.step)) {
    // Before the run's own passes, which leave their gradients in place of the probes'.
    add_probes(record.probes, probe_scales(*settings_.probes, seed_of(settings_), context, again));
  }
  if (is_due(settings_.config.zero_causes_every, record.step)) {
    std::vector<ZeroCauses> causes =
        explain_zeros(caster_.policy(), seed_of(settings_), context, {again, learner.store()});
    std::ranges::move(causes, std::back_inserter(record.zero_causes));
  }
  const auto [scalars, all_reduce] =
      learner.run_passes(caster_, context, {batches, own.scale, measure_of(settings_, own)});
  own.all_reduce = all_reduce;
  note(scalars, detail_, own);
  if (is_due(settings_.config.fp32_reference_every, record.step)) {
    std::vector<Fp32Comparison> compared =
        compare_with_fp32(caster_.policy(), seed_of(settings_), context, again);
    std::ranges::move(compared, std::back_inserter(record.fp32_reference));
  }
  const StepGradients gradients = own.gradients ? as_seen(*own.gradients) : StepGradients{};
  own.skipped = scaler.skips(gradients);
  const bool looks = !overflow_trackers_.empty() && !record.overflow;
  if (!gradients.finite && looks) record.overflow = look_at_step(learner, context, batches);
  const bool holds =
      own.skipped ? learner.weights_finite()
                  : learner.update_weights(caster_, scalars, own.scale,
                                           {record.learning_rate, context.observations,
                                            context.observations == nullptr ? nullptr : &record.what_if});
  record.diverged = !holds;
  if (gradients.finite && record.diverged && looks) record.overflow = look_at_update(learner, context);
  add_to(record, std::move(own), index == 0);
}

void Trainer::update_scalers(const StepRecord& record) {
  if (!record.gradients) return;
  if (scalers_.size() == 1) {
    CombinedGradients all;
    all.add(*record.gradients);
    for (const ObjectiveRecord& further : record.further) all.add(*further.gradients);
    static_cast<void>(scalers_.front()->update(all.sum()));
    return;
  }
  static_cast<void>(scalers_.front()->update(as_seen(*record.gradients)));
  for (std::size_t i = 0; i < record.further.size(); ++i)
    static_cast<void>(scalers_[i + 1]->update(as_seen(*record.further[i].gradients)));
}

std::vector<Batch> Trainer::read_batches() {
  const std::span<const std::int64_t> indices = sampler_.indices(steps_done_);
  const std::int64_t parts = settings_.config.parts.ranks * settings_.config.parts.micro_batches;
  const std::size_t size = indices.size() / static_cast<std::size_t>(parts);
  const ProcessShare own = share_of(parts, process_index());
  std::vector<Batch> batches;
  for (std::int64_t part = own.first; part < own.first + own.count; ++part)
    batches.push_back(read_batch(Split::train, indices.subspan(static_cast<std::size_t>(part) * size, size)));
  return batches;
}

void Trainer::repeat(const Learner& learner, Caster& caster, double loss_scale,
                     const std::vector<Batch>& batches) {
  const KeptBuffers running_statistics(stores());
  static_cast<void>(learner.run_batches(caster, loss_scale * settings_.config.loss_weight, batches));
  caster.events().collect();
}

StepObservations Trainer::look_at_step(const Learner& learner, const StepContext& context,
                                       const std::vector<Batch>& batches) {
  StepObservations seen;
  Caster caster(caster_.policy(), seed_of(settings_), overflow_trackers_);
  caster.begin_step({.step = context.step,
                     .loss_scale = context.loss_scale,
                     .observations = &seen,
                     .layerwise = context.layerwise,
                     .execution = context.execution,
                     .operand_scales = context.operand_scales});
  repeat(learner, caster, context.loss_scale, batches);
  gather_observations(seen);
  return seen;
}

StepObservations Trainer::look_at_update(const Learner& learner, const StepContext& context) {
  StepObservations seen;
  Caster caster(fp32_policy(), seed_of(settings_), overflow_trackers_);
  caster.begin_step({.step = context.step, .observations = &seen});
  learner.show_update(caster);
  return seen;
}

bool Trainer::weights_finite() const {
  const DeviceScope scope(settings_.device);
  return std::ranges::all_of(learners_, &Learner::weights_finite);
}

}  // namespace halfscope
