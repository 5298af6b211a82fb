// The one place where precision changes: round a tensor to its role's format, and let the trackers see it.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include <halfscope/core/random.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/policy/policy.hpp>
#include <halfscope/scaling/layerwise_scale.hpp>

#include "sim/event_queue.hpp"

namespace halfscope {

/// Where a step's casts happen, and who watches them. `observations` is null on steps that are not observed.
struct StepContext {
  std::int64_t step = 0;
  double loss_scale = 1;
  StepObservations* observations = nullptr;
  TrainingPass pass = TrainingPass::forward;
  ExponentHistogram* weight_gradients = nullptr;  ///< takes in all of them before they are rounded; or null
  std::optional<LayerwiseOptions> layerwise{};    ///< of the backward pass, where its layers have scales
  Execution execution = Execution::emulated;
};

class Caster {
 public:
  /// `trackers` outlives the caster.
  Caster(PrecisionPolicy policy, std::uint64_t seed, TrackerList& trackers)
      : policy_(std::move(policy)), policy_in_fp32_(in_fp32(policy_)), seed_(seed), events_(trackers) {}

  /// For casts of the same step and micro-batch that nobody observes: `nobody` is empty, and outlives it.
  Caster(const Caster& other, TrackerList& nobody) : Caster(other.policy_, other.seed_, nobody) {
    begin_step({.step = other.context_.step,
                .loss_scale = other.context_.loss_scale,
                .execution = other.context_.execution});
    micro_batch_ = other.micro_batch_;
  }

  void begin_step(const StepContext& context) {
    context_ = context;
    carried_scale_ = 1;
    micro_batch_.reset();
    precision_ = Precision::reduced;
    events_.begin_step(context.observations, context.weight_gradients);
  }
  void begin_pass(TrainingPass pass) { context_.pass = pass; }
  /// The casts that follow are of micro-batch `index` of the step, counted from 0: each has random bits of
  /// its own, and the trackers see those of all micro-batches as one tensor.
  void begin_micro_batch(std::int32_t index) { micro_batch_ = index; }
  void end_micro_batches() { micro_batch_.reset(); }
  /// The casts that follow are of an operation in `precision`.
  void compute_in(Precision precision) { precision_ = precision; }
  /// The run's, or, while an operation computes in FP32, that in FP32.
  [[nodiscard]] const PrecisionPolicy& policy() const {
    return precision_ == Precision::reduced ? policy_ : policy_in_fp32_;
  }
  /// What memory a cast to `role` leaves numbers in: 16 bits in native execution, where the format has them.
  /// Master weights and the optimizer's state stay FP32.
  [[nodiscard]] DType storage(Role role) const;
  [[nodiscard]] const std::optional<LayerwiseOptions>& layerwise() const { return context_.layerwise; }
  /// What the gradients that follow carry besides the loss scale, a power of two.
  void carry(double scale) { carried_scale_ = scale; }

  /// Rounds `array` to the format of `role`, and brings it into memory of that format in native execution.
  /// Gradients are taken to carry the loss scale.
  void cast(Array& array, std::string_view tensor, Role role);
  /// The same of `values`: of a part of the tensor where `part` says which, from 0. Each part is rounded
  /// with random bits of its own, and the trackers see all parts of a step as one tensor.
  void cast(std::span<float> values, std::string_view tensor, Role role, std::int32_t part = whole_tensor);
  /// Random bits of this step for the purpose called `name`.
  [[nodiscard]] RandomStream random_stream(std::string_view name) const;
  /// Makes a parameter's update by make(update), which trackers of updates observe.
  void update(std::string_view tensor, const WeightUpdate& update, const MakeUpdate& make) {
    events_.update(site(tensor, Role::master_weight), weight_format(), update, make);
  }
  /// `column_sums`, which trackers of reductions observe.
  void sum_columns(std::string_view tensor, const ColumnTerms& terms, const AccumulateModel& model,
                   std::span<float> sums) {
    events_.sum_columns(site(tensor, Role::activation), terms, model, sums);
  }

  /// The events of this step, which the trackers observe.
  [[nodiscard]] EventQueue& events() { return events_; }

 private:
  [[nodiscard]] RandomStream cast_stream(const Site& site) const;
  /// The format in which an update of this step might get lost.
  [[nodiscard]] Quantizer weight_format() const;
  [[nodiscard]] Site site(std::string_view tensor, Role role, std::int32_t part = whole_tensor) const;

  PrecisionPolicy policy_, policy_in_fp32_;
  Precision precision_ = Precision::reduced;
  std::uint64_t seed_;
  EventQueue events_;
  StepContext context_;
  double carried_scale_ = 1;
  std::optional<std::int32_t> micro_batch_{};  ///< of a step that has several
};

}  // namespace halfscope
