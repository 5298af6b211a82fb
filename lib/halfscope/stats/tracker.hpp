// Trackers watch what training does to numbers; they never change a value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <halfscope/arithmetic/counted_dot.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/update/update_effect.hpp>
#include <halfscope/stats/block_counts.hpp>
#include <halfscope/stats/cast_counts.hpp>
#include <halfscope/stats/exponent_histogram.hpp>
#include <halfscope/stats/site.hpp>

namespace halfscope {

/// A tensor has changed precision: what the cast did, and the rounded values, which are on the active device
/// as all arrays of events are, and left out where a tracker is notified later.
struct CastEvent {
  Site site;
  Quantizer quantizer;
  const CastCounts& counts;
  std::span<const float> after;
};

/// Counts of an update, made with it.
struct CountedUpdate {
  std::int64_t elements = 0;
  UpdateEffect effect;
  ExponentHistogram ratios;  ///< |dw| / |w| of the elements in which neither is zero
};

/// An optimizer has added its updates (unscaled, signed) to stored weights. `quantizer` is the format that an
/// unprotected weight would be stored in: with an FP32 master copy the counts are of the updates that would
/// have been lost without it.
struct UpdateEvent {
  Site site;
  Quantizer quantizer;
  const CountedUpdate& counts;
};

/// A reduction has been computed.
struct ReductionEvent {
  Site site;
  ReductionCounters counters;
};

/// The magnitudes that decide an operand's scale.
struct OperandMagnitude {
  float amax = 0;     ///< the largest one, NaNs left out
  float largest = 0;  ///< the largest number of its format
  /// The delayed scale that was used, and the largest number over 2^margin that it aims at; 0 where the
  /// scale is not delayed.
  float delayed_scale = 0, delayed_aim = 0;
};

/// An operand of a product has been brought into a format of its own. Its site's tensor is the layer.
struct OperandEvent {
  Site site;
  OperandPlace place;
  ScaleFormat scales = ScaleFormat::e8m0;  ///< format of its blocks' scales, or of the operand's one
  OperandMagnitude magnitude{};
  const BlockCounts& counts;
};

/// Counts of a tensor before and after its cast. `elements` counts all, exact zeros and non-finite ones
/// included.
struct TensorCounters {
  std::string tensor;
  Role role{};
  double scale = 1;
  std::int64_t elements = 0;
  CastCounters counters{};
};

/// Sums over a tensor's weights: what the stored weights moved by, times what the optimizer's update
/// intended, and the intended's square. Their quotient is 1 where nothing is lost on average.
struct UpdateProjection {
  double along = 0, square = 0;
};

/// Counts of one parameter's update: `lost` of the `nonzero` elements would round back to the old
/// weight.
struct UpdateCounters {
  std::string tensor;
  std::int64_t elements = 0;
  std::int64_t nonzero = 0;
  std::int64_t lost = 0;
  double applied_over_intended = 1;  ///< sum |applied| / sum |intended|: below 1, the updates shrink
  std::optional<UpdateProjection> projection{};  ///< for weights that are stored in a narrow format
  std::int64_t decays = 0;       ///< weights that are not 0, where the update takes a share of them off
  std::int64_t lost_decays = 0;  ///< weights that this share alone would leave unchanged
};

/// One reduction: see ReductionCounters.
struct ReductionRecord {
  std::string tensor;
  ReductionCounters counters;
};

/// Counts of an operand in its format, over all its parts.
struct OperandCounters {
  std::string layer;
  OperandPlace place;
  ScaleFormat scales = ScaleFormat::e8m0;
  OperandMagnitude magnitude{};
  BlockCounts counts{};

  void merge(const OperandCounters& part) {
    magnitude.amax = std::max(magnitude.amax, part.magnitude.amax);
    counts.merge(part.counts);
  }
};

/// A histogram worth keeping: of a tensor, or of log2|dw/w| where `what` says "update_ratio".
struct HistogramRecord {
  std::string tensor;
  std::string what;  ///< the role's name, or "update_ratio"
  double scale = 1;
  ExponentHistogram histogram;
};

/// A tensor, or a reduction, as it went by: after the cast, `nonfinite` of its elements were infinite or NaN.
struct TraceRecord {
  std::string tensor;
  std::string what;  ///< the role's name, or "reduction"
  std::int64_t elements = 0;
  std::int64_t nonfinite = 0;
  float max_abs = 0;  ///< largest finite magnitude before the cast, or of a reduction's partial sums
};

/// Source of the first infinity or NaN of a step.
enum class OverflowCause : std::uint8_t {
  cast,        ///< finite numbers that the format does not hold
  arithmetic,  ///< they came out of the operation so
  reduction,   ///< a partial sum of one
};
template <>
inline constexpr std::array<std::string_view, 3> enum_names<OverflowCause>{"cast", "arithmetic", "reduction"};

/// The first tensor of a step with an infinity or a NaN.
struct FirstOverflow {
  TrainingPass pass{};
  OverflowCause cause{};
  TraceRecord source;
};

/// Everything that the trackers saw in one step, in the order in which training did it.
struct StepObservations {
  std::vector<TensorCounters> tensors;
  std::vector<UpdateCounters> updates;
  std::vector<ReductionRecord> reductions;
  std::vector<OperandCounters> operands;
  std::vector<HistogramRecord> histograms;
  std::vector<TraceRecord> trace;  ///< the latest ones, up to the first overflow
  std::optional<FirstOverflow> first_overflow{};
};

/// Which steps a tracker watches.
enum class WatchedSteps : std::uint8_t {
  observed,    ///< every observe_every-th
  overflowed,  ///< steps that overflow, which are run again for it: the others cost nothing
};

/// When a tracker is notified of events on a device; of those on the CPU it is at once.
enum class EventDelivery : std::uint8_t {
  immediate,  ///< casts with their values; the host waits for the counts of each event
  deferred,   ///< in the same order, before the step ends, without the values
  merged,     ///< the same, and all parts of a tensor as one
};

/// Options of all trackers; each reads its own.
struct TrackerOptions {
  RoleSet roles = gradient_roles;  ///< whose casts are counted
};

/// One kind of observation. Each override handles the events it cares about and appends what it found, or
/// where the event is of a part adds it to what it found of the tensor's other parts. Counting costs time:
/// casts, reductions, updates and operands are counted, and trackers notified, only where a tracker watches
/// them; the
/// events of training's updates hold counts, not the arrays.
class Tracker {
 public:
  virtual ~Tracker() = default;
  [[nodiscard]] virtual WatchedSteps watched_steps() const { return WatchedSteps::observed; }
  [[nodiscard]] virtual CastDetail watches_casts(Role) const { return CastDetail::none; }
  [[nodiscard]] virtual bool watches_reductions() const { return false; }
  [[nodiscard]] virtual bool watches_updates() const { return false; }
  [[nodiscard]] virtual bool watches_operands() const { return false; }
  [[nodiscard]] virtual EventDelivery delivery() const { return EventDelivery::immediate; }
  virtual void on_cast(const CastEvent&, StepObservations&) {}
  virtual void on_update(const UpdateEvent&, StepObservations&) {}
  virtual void on_reduction(const ReductionEvent&, StepObservations&) {}
  virtual void on_operand(const OperandEvent&, StepObservations&) {}
};

}  // namespace halfscope
