// The one place where precision changes: round a tensor to its role's format, and let the trackers see it.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include <halfscope/core/random.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/kernel/block/quantise.hpp>
#include <halfscope/policy/policy.hpp>
#include <halfscope/scaling/layerwise_scale.hpp>

#include "sim/tape/event_queue.hpp"
#include "sim/tape/operand_scales.hpp"

namespace halfscope {

/// Terms of the sums that are the gradients of linear layers' weights: as they are, or their magnitudes,
/// whose sum is 0 only where every term is.
enum class GradientTerms : std::uint8_t { plain, magnitudes };

/// Where a step's casts happen, and who watches them. `observations` is null on steps that are not observed.
struct StepContext {
  std::int64_t step = 0;
  double loss_scale = 1;
  StepObservations* observations = nullptr;
  ExponentHistogram* weight_gradients = nullptr;  ///< takes in all of them before they are rounded; or null
  std::optional<LayerwiseOptions> layerwise{};    ///< scales of the backward pass's layers, if they have any
  Execution execution = Execution::emulated;
  const OperandScales* operand_scales = nullptr;  ///< delayed ones; null: 1 each
  OperandMaxima* operand_maxima = nullptr;        ///< takes in those of delayed scales; or null
  GradientTerms gradient_terms = GradientTerms::plain;
};

/// An operand of a layer's product, as a matrix whose columns are summed over.
struct OperandMatrix {
  std::string_view layer;
  OperandPlace place;
  std::int32_t part = whole_tensor;
  MatrixShape shape;
  std::span<float> values;
};

/// Where in a step a cast happens, and what a gradient carries there.
struct CastContext {
  Precision precision = Precision::reduced;  ///< the operation's: formats of the policy, or FP32
  TrainingPass pass = TrainingPass::forward;
  double carried_scale = 1;               ///< a gradient's scale besides the loss scale: a power of two
  std::int32_t micro_batch = whole_step;  ///< each has random bits of its own; see `Site`
};

class Caster {
 public:
  /// `trackers` outlives the caster.
  Caster(PrecisionPolicy policy, std::uint64_t seed, TrackerList& trackers)
      : policy_(std::move(policy)), policy_in_fp32_(in_fp32(policy_)), seed_(seed), events_(trackers) {}

  /// For casts of the same step that nobody observes: `nobody` is empty, and outlives it.
  Caster(const Caster& other, TrackerList& nobody) : Caster(other.policy_, other.seed_, nobody) {
    begin_step({.step = other.context_.step,
                .loss_scale = other.context_.loss_scale,
                .execution = other.context_.execution,
                .operand_scales = other.context_.operand_scales});
  }

  void begin_step(const StepContext& context) {
    context_ = context;
    events_.begin_step(context.observations, context.weight_gradients);
  }
  /// The run's, or that of an operation in FP32.
  [[nodiscard]] const PrecisionPolicy& policy(Precision precision = Precision::reduced) const {
    return precision == Precision::reduced ? policy_ : policy_in_fp32_;
  }
  /// From here on the formats and sums of another policy.
  void use(PrecisionPolicy policy) {
    policy_in_fp32_ = in_fp32(policy);
    policy_ = std::move(policy);
  }
  /// Data type in which a cast to `role` leaves numbers: 16 bits in native execution, if the format has them.
  /// Master weights and the optimizer's state stay FP32.
  [[nodiscard]] DType storage(Role role, Precision precision) const;
  [[nodiscard]] GradientTerms gradient_terms() const { return context_.gradient_terms; }
  [[nodiscard]] const std::optional<LayerwiseOptions>& layerwise() const { return context_.layerwise; }

  /// Rounds `array` to the format of `role`, and brings it into memory of that format in native execution.
  /// Gradients are taken to carry the loss scale, and what the context says.
  void cast(Array& array, std::string_view tensor, Role role, const CastContext& context);
  /// Rounds `values`: all of the tensor, or the part of it that `part` says, from 0. Each part is rounded
  /// with random bits of its own, and the trackers see all parts of a step as one tensor.
  void cast(std::span<float> values, std::string_view tensor, Role role, const CastContext& context,
            std::int32_t part = whole_tensor);
  /// Brings an operand into a format of its own: transform, scale and rounding.
  void quantise(const OperandMatrix& operand, const OperandFormat& format, const CastContext& context);
  /// Random bits of this step, or of a micro-batch of it, for the purpose called `name`.
  [[nodiscard]] RandomStream random_stream(std::string_view name,
                                           std::int32_t micro_batch = whole_step) const;
  /// Makes a parameter's update by make(update), which trackers of updates observe.
  void update(std::string_view tensor, const WeightUpdate& update, const MakeUpdate& make) {
    events_.update(site(tensor, Role::master_weight, {.pass = TrainingPass::update}), weight_format(), update,
                   make);
  }
  /// The format in which an update of this step might get lost.
  [[nodiscard]] Quantizer weight_format() const;
  [[nodiscard]] Site site(std::string_view tensor, Role role, const CastContext& context,
                          std::int32_t part = whole_tensor) const;

  /// The events of this step, which the trackers observe.
  [[nodiscard]] EventQueue& events() { return events_; }

 private:
  [[nodiscard]] RandomStream cast_stream(const Site& site) const;
  [[nodiscard]] RandomStream operand_stream(const OperandMatrix& operand, Site where) const;
  /// The scale of a whole operand, whose magnitude a delayed one takes in.
  [[nodiscard]] float operand_scale(const OperandMatrix& operand, const OperandFormat& format) const;

  PrecisionPolicy policy_, policy_in_fp32_;
  std::uint64_t seed_;
  EventQueue events_;
  StepContext context_;
};

}  // namespace halfscope
