// The training loop's body.
#include "sim/train/trainer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "lib/nn/elementwise.hpp"
#include "sim/train/gradient_sum.hpp"
#include "sim/train/rule_check.hpp"

namespace halfscope {
namespace {

/// Examples per forward pass of an evaluation: fewer of large images, since a tape keeps every layer's
/// output.
std::int64_t evaluation_batch(const Dataset& dataset) {
  constexpr std::int64_t most_examples = 200, most_elements = 1 << 18;
  const auto elements = static_cast<std::int64_t>(element_count(dataset.example_shape()));
  return std::clamp<std::int64_t>(most_elements / elements, 1, most_examples);
}

bool is_due(std::int64_t every, std::int64_t step) {
  return every > 0 && (step == 1 || step % every == 0);
}

template <typename Value>
Value* pointer_to(std::optional<Value>& value) {
  return value ? &*value : nullptr;
}

/// Whether steps on the device are launched as CUDA graphs, which the environment says: no number depends on
/// it.
bool wants_graph(Device device) {
  const char* const variable = std::getenv("HALFSCOPE_CUDA_GRAPH");
  const std::string value = variable == nullptr ? "off" : variable;
  if (value != "on" && value != "off")
    throw InvalidArgument("HALFSCOPE_CUDA_GRAPH = '" + value + "': give on or off");
  return value == "on" && device == Device::cuda;
}

std::uint64_t seed_of(const RunSettings& settings) {
  return static_cast<std::uint64_t>(settings.config.seed);
}

StepGradients as_seen(const GradientRecord& record) {
  return {.finite = record.finite,
          .max_abs = record.max_abs.value_or(0),
          .histogram = record.histogram ? &*record.histogram : nullptr};
}

/// The gradients of the loss times `factor`: zeros of a parameter that the batch made no use of.
void fill_gradients(Tape& tape, TensorRef loss, double factor, ParameterStore& store) {
  for (Parameter& parameter : store.parameters) parameter.gradient = {};
  tape.backward(loss, static_cast<float>(factor));
  for (Parameter& parameter : store.parameters) {
    if (parameter.gradient.empty()) parameter.gradient = Array::zeros(parameter.master.shape());
  }
}

std::vector<Array> copy_buffers(const ParameterStore& store) {
  std::vector<Array> copies;
  for (const Buffer& buffer : store.buffers) copies.push_back(buffer.value.clone());
  return copies;
}

void restore_buffers(const std::vector<Array>& copies, ParameterStore& store) {
  for (std::size_t i = 0; i < copies.size(); ++i) store.buffers[i].value = copies[i].clone();
}

}  // namespace

Trainer::Trainer(const RunSettings& settings, const Dataset& dataset)
    : settings_(settings),
      dataset_(dataset),
      trackers_(make_trackers(settings, WatchedSteps::observed)),
      overflow_trackers_(make_trackers(settings, WatchedSteps::overflowed)),
      caster_(settings.policy, seed_of(settings), trackers_),
      model_(make_model(settings, dataset)),
      scaler_(make_loss_scaler(settings)),
      detail_(std::max({scaler_->needs(), settings.recorded_gradients,
                        overflow_trackers_.empty() ? GradientDetail::none : GradientDetail::finite})),
      sampler_(dataset.size(Split::train), settings.config.batch, seed_of(settings), dataset.batch_order()) {
  const DeviceScope scope(settings_.device);
  if (wants_graph(settings_.device)) graph_.emplace();
  for (Parameter& parameter : model_.store->parameters)
    parameter.master = parameter.master.to(settings_.device);
  for (Buffer& buffer : model_.store->buffers) buffer.value = buffer.value.to(settings_.device);
  if (model_.teacher) {
    for (Parameter& parameter : model_.teacher->parameters)
      parameter.master = parameter.master.to(settings_.device);
  }
  optimizer_ = make_optimizer(settings, *model_.store);
  for (Parameter& parameter : model_.store->parameters) {
    caster_.cast(parameter.master, parameter.name, Role::master_weight);
  }
}

Batch Trainer::read_batch(Split split, std::span<const std::int64_t> indices) const {
  const DeviceScope here(Device::cpu);
  return dataset_.batch(split, indices);
}

StepRecord Trainer::step() {
  const DeviceScope scope(settings_.device);
  StepRecord record{.step = steps_done_ + 1, .scale = scaler_->scale()};
  record.learning_rate = learning_rate(settings_, steps_done_);
  if (is_due(settings_.config.observe_every, record.step)) record.observations.emplace();
  if (detail_ > GradientDetail::none) record.gradients.emplace();
  if (detail_ == GradientDetail::histogram) record.gradients->histogram.emplace();
  const StepContext context{
      .step = record.step,
      .loss_scale = record.scale,
      .observations = pointer_to(record.observations),
      .weight_gradients = record.gradients ? pointer_to(record.gradients->histogram) : nullptr,
      .layerwise = layerwise_of(*scaler_, caster_.policy()),
      .execution = settings_.execution};
  const std::vector<Batch> batches = read_micro_batches();
  if (settings_.probes && is_due(settings_.config.probe_every, record.step)) {
    // Before the run's own passes, which leave their gradients in place of the probes'.
    record.probes = probe_scales(*settings_.probes, seed_of(settings_), context,
                                 [&](Caster& caster, double scale) { repeat(caster, scale, batches); });
  }
  const StepScalars scalars = run_passes(context, batches, record);
  if (is_due(settings_.config.fp32_reference_every, record.step)) {
    record.fp32_reference =
        compare_with_fp32(caster_.policy(), seed_of(settings_), context,
                          [&](Caster& caster, double scale) { repeat(caster, scale, batches); });
  }
  record.skipped = scaler_->update(record.gradients ? as_seen(*record.gradients) : StepGradients{});
  const bool finite = !record.gradients || record.gradients->finite;
  if (!finite && !overflow_trackers_.empty()) record.overflow = look_at_step(context, batches);
  const bool holds =
      record.skipped ? weights_finite() : update_weights(scalars, record.scale, record.learning_rate);
  record.diverged = !holds;
  if (finite && record.diverged && !overflow_trackers_.empty()) record.overflow = look_at_update(context);
  ++steps_done_;
  return record;
}

std::vector<Batch> Trainer::read_micro_batches() {
  const std::span<const std::int64_t> indices = sampler_.indices(steps_done_);
  const std::size_t size = indices.size() / static_cast<std::size_t>(settings_.config.micro_batches);
  std::vector<Batch> batches;
  for (std::size_t first = 0; first < indices.size(); first += size)
    batches.push_back(read_batch(Split::train, indices.subspan(first, size)));
  return batches;
}

Array Trainer::run_micro_batches(Caster& caster, double factor, const std::vector<Batch>& batches) {
  const auto count = static_cast<double>(batches.size());
  Array loss = Array::zeros({});
  GradientSum sum(settings_.gradient_accumulator);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (batches.size() > 1) caster.begin_micro_batch(static_cast<std::int32_t>(i));
    Tape tape(caster, Phase::training);
    const TensorRef own = model_.forward(tape, batches[i]).loss;
    fill_gradients(tape, own, factor / count, *model_.store);
    if (batches.size() == 1) return tape.value(own).clone();
    sum.add(*model_.store);
    add(tape.value(own).view(), loss.values());
  }
  caster.end_micro_batches();
  sum.finish(*model_.store);
  scale(loss.view(), static_cast<float>(1 / count), loss.values());
  return loss;
}

StepScalars Trainer::run_passes(const StepContext& context, const std::vector<Batch>& batches,
                                StepRecord& record) {
  GradientMeasure measure{.largest = record.gradients.has_value()};
  if (settings_.config.clip_norm > 0) {
    const bool unscaled = settings_.clipped_gradients == ClippedGradients::unscaled;
    measure.norm_after = unscaled ? static_cast<float>(1 / record.scale) : 1.0f;
  }
  QueuedScalars queued;
  const auto queue = [&] {
    caster_.begin_step(context);
    const Array loss = run_micro_batches(caster_, record.scale * settings_.config.loss_weight, batches);
    queued = queue_scalars(caster_.events().readback(), loss, *model_.store, measure);
  };
  graph_ ? graph_->run(queue) : queue();
  const StepScalars scalars = collect_scalars(caster_.events(), queued);
  record.loss = scalars.loss;
  if (!record.gradients) return scalars;
  record.gradients->finite = std::isfinite(scalars.largest);
  if (detail_ >= GradientDetail::max_abs) record.gradients->max_abs = scalars.largest;
  return scalars;
}

void Trainer::repeat(Caster& caster, double loss_scale, const std::vector<Batch>& batches) {
  const std::vector<Array> running_statistics = copy_buffers(*model_.store);
  static_cast<void>(run_micro_batches(caster, loss_scale * settings_.config.loss_weight, batches));
  caster.events().collect();
  restore_buffers(running_statistics, *model_.store);
}

StepObservations Trainer::look_at_step(const StepContext& context, const std::vector<Batch>& batches) {
  StepObservations seen;
  Caster caster(caster_.policy(), seed_of(settings_), overflow_trackers_);
  caster.begin_step({.step = context.step,
                     .loss_scale = context.loss_scale,
                     .observations = &seen,
                     .layerwise = context.layerwise,
                     .execution = context.execution});
  repeat(caster, context.loss_scale, batches);
  return seen;
}

StepObservations Trainer::look_at_update(const StepContext& context) {
  StepObservations seen;
  Caster caster(fp32_policy(), seed_of(settings_), overflow_trackers_);
  caster.begin_step({context.step, 1, &seen, TrainingPass::update});
  for (Parameter& parameter : model_.store->parameters) {
    for (const float factor : {factors_.unscale, factors_.clip}) {
      if (factor != 1.0f) scale(parameter.gradient.values(), factor, parameter.gradient.values());
    }
    caster.cast(parameter.gradient, parameter.name, Role::weight_gradient);
  }
  for (Parameter& parameter : model_.store->parameters) {
    caster.cast(parameter.master, parameter.name, Role::master_weight);
  }
  caster.events().collect();
  return seen;
}

void Trainer::try_example() {
  const DeviceScope scope(settings_.device);
  caster_.begin_step({.step = steps_done_, .execution = settings_.execution});
  Tape tape(caster_, Phase::evaluation);
  const std::array<std::int64_t, 1> first{0};
  (void)model_.forward(tape, read_batch(Split::test, first));
  if (settings_.policy.rules.empty()) return;
  Tape training(caster_, Phase::training);
  const std::vector<Array> running_statistics = copy_buffers(*model_.store);
  (void)model_.forward(training, read_batch(Split::train, first));
  restore_buffers(running_statistics, *model_.store);
  check_rules_apply(settings_.policy.rules, training.entries());
}

Evaluation Trainer::evaluate() {
  const DeviceScope scope(settings_.device);
  caster_.begin_step({.step = steps_done_, .execution = settings_.execution});
  Evaluation total;
  const std::unique_ptr<Metric> metric = model_.make_metric();
  const std::int64_t size = dataset_.size(Split::test);
  const std::int64_t batch_size = evaluation_batch(dataset_);
  for (std::int64_t first = 0; first < size; first += batch_size) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(batch_size, size - first)));
    std::iota(indices.begin(), indices.end(), first);
    Tape tape(caster_, Phase::evaluation);
    const Batch batch = read_batch(Split::test, indices);
    const BatchOutcome outcome = model_.forward(tape, batch);
    metric->add(tape, outcome, batch);
    total.loss += static_cast<double>(tape.value(outcome.loss).item()) * static_cast<double>(indices.size());
  }
  return {total.loss / static_cast<double>(size), metric->value(), metric->accuracy()};
}

}  // namespace halfscope
