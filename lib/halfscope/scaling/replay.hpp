// Replay of a loss scaler over a recorded run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <halfscope/scaling/loss_scaler.hpp>

namespace halfscope {

/// What a run recorded of a step's weight gradients, which carried `scale`.
struct TraceStep {
  std::int64_t step = 0;
  double scale = 1;
  bool finite = true;
  double max_abs = 0;                            ///< where they are finite
  std::optional<ExponentHistogram> histogram{};  ///< before rounding
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

  [[nodiscard]] const std::vector<double>& scales() const { return scales_; }  ///< of each step
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
  void count_flushed(const TraceStep& step, double scale);

  LossScaler* scaler_;
  std::vector<double> scales_;
  std::vector<std::int64_t> steps_;  ///< of each scale
  std::vector<std::int64_t> overflows_;
  double flushed_sum_ = 0;
  std::int64_t flushed_steps_ = 0;
  std::optional<std::string> stopped_;
};

/// The scalers that somebody asked for, and whether that was for "all": then those that look at histograms
/// are left out of a trace without.
struct ScalersToReplay {
  std::vector<std::string> names;
  bool all = false;
};

/// `names` as they are, numbers among them; for the one name "all" every scaler that a trace can be replayed
/// through.
[[nodiscard]] ScalersToReplay scalers_to_replay(std::vector<std::string> names);

}  // namespace halfscope
