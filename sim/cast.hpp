// The one place where precision changes: round a tensor to its role's format, and let the trackers see it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <halfscope/core/random.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>
#include <halfscope/scaling/layerwise_scale.hpp>
#include <halfscope/stats/tracker.hpp>

#include "lib/nn/optimizer_step.hpp"
#include "sim/pending_event.hpp"
#include "sim/policy.hpp"

namespace halfscope {

using TrackerList = std::vector<std::unique_ptr<Tracker>>;

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

using MakeUpdate = std::function<void(const WeightUpdate&)>;

class Caster {
 public:
  /// `trackers` outlives the caster.
  Caster(PrecisionPolicy policy, std::uint64_t seed, TrackerList& trackers)
      : policy_(std::move(policy)), seed_(seed), trackers_(&trackers) {}

  /// What the step before has left uncollected is dropped.
  void begin_step(const StepContext& context) {
    context_ = context;
    carried_scale_ = 1;
    pending_.clear();
    readback_.forget();
  }
  void begin_pass(TrainingPass pass) { context_.pass = pass; }
  [[nodiscard]] const PrecisionPolicy& policy() const { return policy_; }
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
  /// Calls make(update), which is to make it; where trackers watch updates, with where to count it.
  void update(std::string_view tensor, WeightUpdate update, const MakeUpdate& make);
  /// `column_sums`, of which the trackers hear where they watch reductions.
  void sum_columns(std::string_view tensor, const ColumnTerms& terms, const AccumulateModel& model,
                   std::span<float> sums);

  /// Whether the trackers are told at `collect` of what is counted on the active device.
  [[nodiscard]] bool tells_later() const;
  /// Where the device counts until `collect`, and where others let it leave what they want to know.
  [[nodiscard]] Readback& readback() { return readback_; }
  /// Waits for the device once, reads back what it has counted since the last time and tells the trackers.
  void collect();

 private:
  [[nodiscard]] bool observed() const { return context_.observations != nullptr; }
  /// What is counted at a cast of `role` in this step.
  [[nodiscard]] CastDetail wanted(Role role) const;
  /// The most that any tracker wants to know of it.
  [[nodiscard]] CastDetail watched(Role role) const;
  [[nodiscard]] EventDelivery delivery() const;
  [[nodiscard]] bool watches_reductions() const;
  [[nodiscard]] bool watches_updates() const;
  /// Whether the casts of `role` are added to the step's weight gradients.
  [[nodiscard]] bool adds_up(Role role) const {
    return role == Role::weight_gradient && context_.weight_gradients != nullptr;
  }
  [[nodiscard]] RandomStream cast_stream(const Site& site) const;
  /// The format in which an update of this step might get lost.
  [[nodiscard]] Quantizer weight_format() const;
  /// The cast of values on the device, counted there.
  void cast_later(std::span<float> values, const Site& where, CastDetail detail);
  /// Of counts that `readback` has read.
  void tell(const PendingEvent& event, const Readback& readback) const;
  void tell_cast(const CastEvent& event) const;
  /// Adds them as the backward pass will hand them out, without what they carry.
  void count_weight_gradients(std::span<const float> values);
  [[nodiscard]] Site site(std::string_view tensor, Role role, std::int32_t part = whole_tensor) const;

  PrecisionPolicy policy_;
  std::uint64_t seed_;
  TrackerList* trackers_;
  StepContext context_;
  double carried_scale_ = 1;
  Readback readback_{};
  Readback at_once_{};                   ///< of events that the trackers are told of immediately
  std::vector<PendingEvent> pending_{};  ///< in the order in which they happened
};

}  // namespace halfscope
