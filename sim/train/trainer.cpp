// The training loop's body.
#include "sim/train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include <halfscope/format/bits.hpp>

#include "lib/nn/elementwise.hpp"
#include "sim/models/models.hpp"

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

Model make_model(const TrainConfig& config, const Dataset& dataset) {
  return find_in_table("model", config.model, model_table)
      .make({.example_shape = dataset.example_shape(),
             .class_count = dataset.class_count(),
             .seed = static_cast<std::uint64_t>(config.seed),
             .batch_norm_epsilon = static_cast<float>(config.batch_norm_epsilon),
             .embedding_size = config.embedding_size,
             .hidden_size = config.hidden_size,
             .dropout = static_cast<float>(config.dropout)});
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

StepGradients as_seen(const GradientRecord& record) {
  return {.finite = record.finite,
          .max_abs = record.max_abs.value_or(0),
          .histogram = record.histogram ? &*record.histogram : nullptr};
}

}  // namespace

Trainer::Trainer(const TrainConfig& config, const Dataset& dataset)
    : config_(config),
      device_(parse_enum<Device>("device", config.device)),
      execution_(execution_of(config)),
      dataset_(dataset),
      trackers_(make_trackers(config, WatchedSteps::observed)),
      overflow_trackers_(make_trackers(config, WatchedSteps::overflowed)),
      caster_(resolve_policy(config), static_cast<std::uint64_t>(config.seed), trackers_),
      model_(make_model(config, dataset)),
      scaler_(make_loss_scaler(config)),
      detail_(std::max({scaler_->needs(), parse_enum<GradientDetail>("detail", config.record_gradients),
                        overflow_trackers_.empty() ? GradientDetail::none : GradientDetail::finite})),
      sampler_(dataset.size(Split::train), config.batch, static_cast<std::uint64_t>(config.seed)) {
  const DeviceScope scope(device_);
  if (wants_graph(device_)) graph_.emplace();
  for (Parameter& parameter : model_.store->parameters) parameter.master = parameter.master.to(device_);
  for (Buffer& buffer : model_.store->buffers) buffer.value = buffer.value.to(device_);
  optimizer_ = make_optimizer(config, *model_.store);
  for (Parameter& parameter : model_.store->parameters) {
    caster_.cast(parameter.master, parameter.name, Role::master_weight);
  }
}

Batch Trainer::read_batch(Split split, std::span<const std::int64_t> indices) const {
  const DeviceScope here(Device::cpu);
  return dataset_.batch(split, indices);
}

StepRecord Trainer::step() {
  const DeviceScope scope(device_);
  StepRecord record{.step = steps_done_ + 1, .scale = scaler_->scale()};
  record.learning_rate = learning_rate(config_, steps_done_);
  if (is_due(config_.observe_every, record.step)) record.observations.emplace();
  if (detail_ > GradientDetail::none) record.gradients.emplace();
  if (detail_ == GradientDetail::histogram) record.gradients->histogram.emplace();
  const StepContext context{
      .step = record.step,
      .loss_scale = record.scale,
      .observations = pointer_to(record.observations),
      .weight_gradients = record.gradients ? pointer_to(record.gradients->histogram) : nullptr,
      .layerwise = layerwise_of(*scaler_, caster_.policy()),
      .execution = execution_};
  const Batch batch = read_batch(Split::train, sampler_.indices(steps_done_));
  const StepScalars numbers = run_passes(context, batch, record);
  if (is_due(config_.fp32_reference_every, record.step)) {
    record.fp32_reference =
        compare_with_fp32(caster_.policy(), static_cast<std::uint64_t>(config_.seed), context,
                          [&](Caster& caster, double scale) { repeat(caster, scale, batch); });
  }
  record.skipped = scaler_->update(record.gradients ? as_seen(*record.gradients) : StepGradients{});
  const bool finite = !record.gradients || record.gradients->finite;
  if (!finite && !overflow_trackers_.empty()) record.overflow = look_at_step(context, batch);
  const bool holds =
      record.skipped ? weights_finite() : update_weights(numbers, record.scale, record.learning_rate);
  record.diverged = !holds;
  if (finite && record.diverged && !overflow_trackers_.empty()) record.overflow = look_at_update(context);
  ++steps_done_;
  return record;
}

StepScalars Trainer::run_passes(const StepContext& context, const Batch& batch, StepRecord& record) {
  GradientMeasure measure{.largest = record.gradients.has_value()};
  if (config_.clip_norm > 0) measure.norm_after = static_cast<float>(1 / record.scale);
  QueuedNumbers queued;
  const auto queue = [&] {
    caster_.begin_step(context);
    Tape tape(caster_, Phase::training);
    const TensorRef loss = model_.forward(tape, batch).loss;
    tape.backward(loss, static_cast<float>(record.scale * config_.loss_weight));
    queued = queue_numbers(caster_, tape.value(loss), *model_.store, measure);
  };
  graph_ ? graph_->run(queue) : queue();
  const StepScalars numbers = collect_numbers(caster_, queued);
  record.loss = numbers.loss;
  if (!record.gradients) return numbers;
  record.gradients->finite = std::isfinite(numbers.largest);
  if (detail_ >= GradientDetail::max_abs) record.gradients->max_abs = numbers.largest;
  return numbers;
}

void Trainer::repeat(Caster& caster, double loss_scale, const Batch& batch) {
  std::vector<Array> running_statistics;
  for (const Buffer& buffer : model_.store->buffers) running_statistics.push_back(buffer.value.clone());
  Tape tape(caster, Phase::training);
  const TensorRef loss = model_.forward(tape, batch).loss;
  tape.backward(loss, static_cast<float>(loss_scale * config_.loss_weight));
  caster.collect();
  for (std::size_t i = 0; i < running_statistics.size(); ++i) {
    model_.store->buffers[i].value = std::move(running_statistics[i]);
  }
}

StepObservations Trainer::look_at_step(const StepContext& context, const Batch& batch) {
  StepObservations seen;
  Caster caster(caster_.policy(), static_cast<std::uint64_t>(config_.seed), overflow_trackers_);
  caster.begin_step({.step = context.step,
                     .loss_scale = context.loss_scale,
                     .observations = &seen,
                     .layerwise = context.layerwise,
                     .execution = context.execution});
  repeat(caster, context.loss_scale, batch);
  return seen;
}

StepObservations Trainer::look_at_update(const StepContext& context) {
  StepObservations seen;
  Caster caster(fp32_policy(), static_cast<std::uint64_t>(config_.seed), overflow_trackers_);
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
  caster.collect();
  return seen;
}

Evaluation Trainer::evaluate() {
  const DeviceScope scope(device_);
  caster_.begin_step({.step = steps_done_, .execution = execution_});
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
  return {total.loss / static_cast<double>(size), metric->value()};
}

}  // namespace halfscope
