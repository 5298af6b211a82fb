// Passes and updates of one loss.
#include "sim/train/learner.hpp"

#include <cstdlib>
#include <numeric>
#include <utility>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/cast/convert.hpp>

#include "lib/nn/elementwise.hpp"
#include "sim/optim/clip.hpp"
#include "sim/tape/kept_buffers.hpp"
#include "sim/train/applied_updates.hpp"
#include "sim/train/gradient_sum.hpp"
#include "sim/train/observation_exchange.hpp"

namespace halfscope {
namespace {

/// Whether steps on the device are launched as CUDA graphs, which the environment says: no number depends on
/// it.
bool wants_graph(Device device) {
  const char* const variable = std::getenv("HALFSCOPE_CUDA_GRAPH");
  const std::string value = variable == nullptr ? "off" : variable;
  if (value != "on" && value != "off")
    throw InvalidArgument("HALFSCOPE_CUDA_GRAPH = '" + value + "': give on or off");
  return value == "on" && device == Device::cuda;
}

/// The gradients of the loss times `factor`: zeros of a parameter that the batch made no use of.
void fill_gradients(Tape& tape, TensorRef loss, double factor, ParameterStore& store) {
  for (Parameter& parameter : store.parameters) parameter.gradient = {};
  tape.backward(loss, static_cast<float>(factor));
  for (Parameter& parameter : store.parameters) {
    if (parameter.gradient.empty()) parameter.gradient = Array::zeros(parameter.master.shape());
  }
}

/// On the active device.
Array mean_loss(const std::vector<float>& losses) {
  Array mean({}, Device::cpu);
  mean[0] = static_cast<float>(std::accumulate(losses.begin(), losses.end(), 0.0) /
                               static_cast<double>(losses.size()));
  return mean.to(active_device());
}

constexpr CastContext in_update{.pass = TrainingPass::update};

bool is_finite(std::uint32_t magnitude) {
  return magnitude < infinity_bits;
}

}  // namespace

Learner::Learner(const RunSettings& settings, NamedLoss loss, ParameterStore& store,
                 std::vector<ParameterStore*> all)
    : settings_(&settings),
      loss_(std::move(loss)),
      store_(&store),
      optimizer_(make_optimizer(settings, store)),
      compensated_(store, settings.policy.weight_sum, settings.policy.quantizer(Role::master_weight)),
      all_stores_(std::move(all)) {
  const bool one_rank = settings.config.parts.ranks == 1;
  if (one_rank && wants_graph(settings.device)) graph_ = std::make_unique<StepGraph>();
  if (!one_rank) ranks_ = std::make_unique<RankGradients>(settings, store);
}

Array Learner::run_micro_batches(Caster& caster, double factor, const Part& part) const {
  const std::size_t batches = part.batches.size();
  const auto count = static_cast<double>(batches);
  Array loss = Array::zeros({});
  GradientSum sum(settings_->gradient_sum);
  for (std::size_t i = 0; i < batches; ++i) {
    const std::int32_t micro_batch =
        batches > 1 || ranks_ ? part.first + static_cast<std::int32_t>(i) : whole_step;
    Tape tape(caster, Phase::training, {settings_->config.checkpoint_segments, micro_batch});
    const TensorRef own = loss_.of(tape, part.batches[i]);
    fill_gradients(tape, own, factor / count, *store_);
    if (batches == 1) return tape.value(own).clone();
    sum.add(*store_);
    add(tape.value(own).view(), loss.values());
  }
  sum.finish(*store_);
  scale(loss.view(), static_cast<float>(1 / count), loss.values());
  return loss;
}

Learner::StepLoss Learner::run_batches(Caster& caster, double factor,
                                       const std::vector<Batch>& batches) const {
  if (!ranks_) return {run_micro_batches(caster, factor, {batches})};
  const ProcessShare own = own_ranks(*settings_);
  const auto micro_batches = settings_->config.parts.micro_batches;
  std::vector<float> losses(static_cast<std::size_t>(settings_->config.parts.ranks));
  for (std::int64_t i = 0; i < own.count; ++i) {
    const std::int64_t rank = own.first + i;
    // All ranks have the running statistics of rank 0, as DDP broadcasts them.
    const KeptBuffers kept(rank == 0 ? std::vector<ParameterStore*>{} : all_stores_);
    const Part part{std::span(batches).subspan(static_cast<std::size_t>(i * micro_batches),
                                               static_cast<std::size_t>(micro_batches)),
                    static_cast<std::int32_t>(rank * micro_batches)};
    losses[static_cast<std::size_t>(rank)] = run_micro_batches(caster, factor, part).item();
    ranks_->put(i, *store_);
  }
  gather_shares(losses);
  return {mean_loss(losses), ranks_->finish(*store_)};
}

Learner::PassResults Learner::run_passes(Caster& caster, const StepContext& context, const Passes& passes) {
  QueuedScalars queued;
  PassResults results;
  const auto queue = [&] {
    caster.begin_step(context);
    const StepLoss step = run_batches(caster, passes.scale * settings_->config.loss_weight, passes.batches);
    results.all_reduce = step.all_reduce;
    queued = queue_scalars(caster.events().readback(), step.loss, *store_, passes.measure);
  };
  graph_ ? graph_->run(queue) : queue();
  results.scalars = collect_scalars(caster.events(), queued);
  if (context.observations != nullptr) gather_observations(*context.observations);
  if (context.weight_gradients != nullptr) sum_histograms(*context.weight_gradients);
  return results;
}

bool Learner::update_weights(Caster& caster, const StepScalars& scalars, double loss_scale,
                             const UpdateContext& context) {
  const double clip_norm = settings_->config.clip_norm;
  factors_ = {.unscale = static_cast<float>(1 / loss_scale),
              .clip = clip_norm > 0 ? clip_factor(scalars.norm, clip_norm) : 1};
  optimizer_->begin_step(context.learning_rate);
  AppliedUpdates applied(caster, optimizer_->decay(context.learning_rate), context.observations);
  UpdateQuestions questions(settings_->what_if_weights, context.what_if);
  Readback& readback = caster.events().readback();
  // Before the cast a weight may be infinite that is not after it.
  const bool casts = !caster.policy().quantizer(Role::master_weight).is_identity();
  const auto uncast = readback.take<std::uint32_t>(1), largest = readback.take<std::uint32_t>(1);
  for (std::size_t i = 0; i < store_->parameters.size(); ++i) {
    Parameter& parameter = store_->parameters[i];
    ++parameter.version;
    parameter.gradient = to_dtype(std::move(parameter.gradient), DType::f32);
    compensated_.before_update(i);
    applied.before(parameter);
    questions.before(parameter);
    caster.update(parameter.name,
                  {.gradient = parameter.gradient.values(),
                   .unscale = factors_.unscale,
                   .clip = factors_.clip,
                   .weights = parameter.master.values(),
                   .largest = readback.device_values(casts ? uncast : largest)},
                  [&](const WeightUpdate& update) { optimizer_->update(i, update); });
    applied.intended(parameter);
    questions.after(parameter);
    compensated_.after_update(i);
    caster.cast(parameter.master, parameter.name, Role::master_weight, in_update);
    applied.applied(parameter);
    if (casts) raise_to_largest(parameter.master.view(), readback.device_values(largest));
  }
  caster.events().collect();
  applied.write();
  return is_finite(readback.values(largest)[0]);
}

void Learner::show_update(Caster& caster) const {
  for (Parameter& parameter : store_->parameters) {
    for (const float factor : {factors_.unscale, factors_.clip}) {
      if (factor != 1.0f) scale(parameter.gradient.values(), factor, parameter.gradient.values());
    }
    caster.cast(parameter.gradient, parameter.name, Role::weight_gradient, in_update);
  }
  for (Parameter& parameter : store_->parameters)
    caster.cast(parameter.master, parameter.name, Role::master_weight, in_update);
  caster.events().collect();
}

bool Learner::weights_finite() const {
  Readback readback;
  const auto largest = readback.take<std::uint32_t>(1);
  for (const Parameter& parameter : store_->parameters)
    raise_to_largest(parameter.master.view(), readback.device_values(largest));
  readback.read();
  return is_finite(readback.values(largest)[0]);
}

}  // namespace halfscope
