// Replay of loss scalers over a recorded run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/scaling/loss_scaler.hpp>
#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {

/// Record of a step's weight gradients, which carried `scale`.
struct TraceStep {
  std::int64_t step = 0;
  double scale = 1;
  bool finite = true;
  double max_abs = 0;                                    ///< where they are finite
  std::shared_ptr<const ExponentHistogram> histogram{};  ///< before rounding; it is large, and most have none
};

/// One scaler going through a trace, step by step. The gradients are taken to be the recorded ones but for
/// their scale: what a skipped or an added update would have changed in later steps is left out.
///
/// A step overflows at a scale S where max|g| S is 65520 or more, FP16's limit. A step that was recorded as
/// not finite overflows at its own scale and above; below, it counts as finite with the largest max|g| that
/// fits under it, for nothing more is known; recorded at a scale of 1 or less it is not finite at any scale.
class ScalerReplay {
 public:
  /// `scaler` outlives the replay. Throws InvalidArgument for one that acts inside the backward pass.
  explicit ScalerReplay(LossScaler& scaler);

  /// Throws InvalidArgument where the scaler needs a histogram and the step has none.
  void step(const TraceStep& step);
  /// Takes the scaler through a step that was not recorded, with the gradients of another one: it counts for
  /// the scaler and among the overflows, not among the scales. Throws as `step` does.
  void hold(const TraceStep& step);

  [[nodiscard]] const std::vector<double>& scales() const {
    return scales_;
  }  ///< scale of each recorded step
  /// The steps that overflow: skipped, unless the scaler does not look, and then they destroy the weights.
  [[nodiscard]] const std::vector<std::int64_t>& overflows() const { return overflows_; }
  [[nodiscard]] bool skips() const { return scaler_->needs() != GradientDetail::none; }
  /// The mean share of the non-zero weight gradients that the scale flushes to zero; empty without
  /// histograms. A scale that is no power of two is taken as the one below.
  [[nodiscard]] std::optional<double> flushed() const;
  /// The first step that had the last step's scale; 0 where there was no step.
  [[nodiscard]] std::int64_t first_at_final_scale() const;
  /// Why the scaler would have ended the run, if it would; later steps are not looked at.
  [[nodiscard]] const std::optional<std::string>& stopped() const { return stopped_; }

 private:
  void require_histogram(const TraceStep& step) const;
  void advance(const TraceStep& step);
  void count_flushed(const TraceStep& step, double scale);

  LossScaler* scaler_;
  std::vector<double> scales_;
  std::vector<std::int64_t> steps_;  ///< step of each scale
  std::vector<std::int64_t> overflows_;
  double flushed_sum_ = 0;
  std::int64_t flushed_steps_ = 0;
  std::optional<std::string> stopped_;
};

/// A scaler on its way through a trace, under the name that it was asked for by.
struct ReplayCandidate {
  std::string name;
  std::unique_ptr<LossScaler> scaler;
  ScalerReplay replay;  ///< replay of `scaler`
};

/// Several scalers going through one trace, side by side.
class TraceReplay {
 public:
  /// `names` are names and numbers as `find_scaler` takes them; "all" stands for every scaler that a trace
  /// can be replayed through and that is not named beside it. Each setting goes to the scalers that have the
  /// option. Throws InvalidArgument for an unknown scaler, a value out of its option's range, and an option
  /// that none of the scalers has; `option_prefix` opens that last message.
  TraceReplay(std::vector<std::string> names, const ScalerSettings& settings,
              std::string_view option_prefix = "");
  TraceReplay(const TraceReplay&) = delete;
  TraceReplay& operator=(const TraceReplay&) = delete;

  /// The longest gap between two recorded steps that is filled.
  static constexpr std::int64_t longest_gap = 1'000'000;

  /// Takes every scaler through a recorded step, and before it through those between the last one and this
  /// one, for scalers count steps: the latest finite gradients stand for theirs. A first step without a
  /// histogram leaves out those of "all" that look at one. Throws as ScalerReplay::step does, and
  /// InvalidArgument for a gap of more than `longest_gap` steps.
  void step(const TraceStep& step);

  /// Takes every scaler through the steps before `step` that were not recorded, each with the gradients of
  /// `like`. Throws as `step` does.
  void hold_until(std::int64_t step, TraceStep like);

  /// Leaves out those of "all" that look at more than `detail`; throws InvalidArgument for others that do.
  void restrict_to(GradientDetail detail);

  [[nodiscard]] const std::vector<ReplayCandidate>& candidates() const { return candidates_; }
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }  ///< names
  [[nodiscard]] const std::vector<std::int64_t>& steps() const { return steps_; }       ///< their numbers
  /// How many of the steps were recorded with gradients that are not finite.
  [[nodiscard]] std::int64_t not_finite() const { return not_finite_; }
  /// How many were recorded with gradients that are all zero.
  [[nodiscard]] std::int64_t all_zero() const { return all_zero_; }

 private:
  /// Leaves out those of "all" that look at more than `detail`.
  void leave_out(GradientDetail detail);

  std::vector<std::string> named_;
  std::vector<ReplayCandidate> candidates_;
  std::vector<std::string> left_out_;
  std::vector<std::int64_t> steps_;
  std::int64_t last_ = 0;  ///< the last step that the scalers have been taken through
  std::optional<TraceStep> latest_finite_;
  std::int64_t not_finite_ = 0;
  std::int64_t all_zero_ = 0;
};

}  // namespace halfscope
