// Replay of loss scalers over a log, with the least and the greatest gradients that it allows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/scaling/replay.hpp>
#include <halfscope/scaling/skip_log.hpp>

namespace halfscope {

/// One scaler over a log, with some gradients that the log allows.
struct SkipLogOutcome {
  const ReplayCandidate* candidate = nullptr;
  std::string_view gradients;                ///< "any", "least" or "greatest"
  std::optional<std::int64_t> first_unsure;  ///< none with any
};

/// Scalers that look at no more than whether gradients are finite, going through a log twice.
///
/// A skipped step overflows at its scale S and above; below, it is finite with the least gradients, and not
/// with the greatest, which may be NaN. One that was skipped at a scale of 1 or less, or that was lost there,
/// is finite at no scale. For any other step the log of a scaler tells that max|g| S was 65504, FP16's
/// largest number, at most, and max|g| at most the gradients' norm where that is logged; a log without a
/// scaler tells the norm alone. Steps in a hole may be anything.
class SkipLogReplay {
 public:
  /// Names and settings as TraceReplay takes them. Throws as that does, and InvalidArgument for a scaler that
  /// looks at magnitudes, which "all" leaves out.
  SkipLogReplay(const std::vector<std::string>& names, const ScalerSettings& settings,
                std::string_view option_prefix = "");

  /// Goes through all steps. Throws as TraceReplay::step does.
  void take(const SkipLog& log);

  [[nodiscard]] const TraceReplay& least() const { return least_; }
  [[nodiscard]] const TraceReplay& greatest() const { return greatest_; }
  /// The first step at which gradients between the two decide what candidate `index` does. None: whatever
  /// they were, it does the same.
  [[nodiscard]] std::optional<std::int64_t> first_unsure(std::size_t index) const;
  /// One for each scaler that does the same with any gradients, two for others: with the least and the
  /// greatest. They point into this object.
  [[nodiscard]] std::vector<SkipLogOutcome> outcomes() const;

 private:
  TraceReplay least_, greatest_;
};

/// The log's own run.
struct RecordedRun {
  std::vector<double> scales;       ///< scale of each step of the log
  std::vector<std::int64_t> skips;  ///< the steps
  std::int64_t first_at_final_scale = 0;
  std::optional<double> next_scale{};  ///< that the last step leaves, where the log tells it
  /// Whether the log tells every step and every scale, so that scalers can be compared with it.
  bool is_compared = false;
  /// Scalers that skip the same steps at the same scales from the log's first scale on, and leave the same
  /// scale; a short log leaves several.
  std::vector<std::string> reproduced_by;
};
[[nodiscard]] RecordedRun recorded_run(const SkipLog& log);

}  // namespace halfscope
