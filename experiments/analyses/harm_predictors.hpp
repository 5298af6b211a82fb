// The predictors of harm: one line per predictor.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/scaling/advisor.hpp>
#include <halfscope/stats/exponent_histogram.hpp>
#include <halfscope/stats/site.hpp>

#include "experiments/results/run_records.hpp"

namespace halfscope {

/// A gradient of a watched step in FP32, unscaled.
struct WatchedGradient {
  Role role{};
  ExponentHistogram histogram;
};

/// Error of the weight gradients at a scale: see ScaleProbe. Infinite where they are not finite.
struct ProbedError {
  double scale = 1;
  double error = 0;
};

/// Records of one step of an FP32 run.
struct WatchedStep {
  std::int64_t step = 0;
  std::vector<WatchedGradient> gradients;  ///< in the order of the backward pass
  std::vector<ProbedError> probes;
};

/// The watched steps of the run in `folder`, in order; none where it has no records. Gradients are those that
/// arms cast to `format`. Records count at the edges of FP16; for another significand magnitudes are taken to
/// be uniform within their binade, so that the largest scale may come out a binade off.
[[nodiscard]] std::vector<WatchedStep> read_watched_steps(const std::filesystem::path& folder,
                                                          const FloatFormat& format = fp16);

/// Observed steps of an FP32 run that its record keeps: the first and the last where it is packed.
[[nodiscard]] std::vector<WatchedStep> kept_steps(const RunRecords& records, const std::string& arm,
                                                  std::int64_t seed);

/// The fits of the gradients, each over all steps of all runs.
[[nodiscard]] std::vector<TensorFit> fits_over(const std::vector<std::span<const WatchedStep>>& runs);
/// The advice for FP16 on the steps that the record of an FP32 arm keeps, of all seeds.
[[nodiscard]] Advice advice_on(const RunRecords& records, const std::string& arm);

/// Number of a step in FP32 that rises with the harm that the scale 2^scale_log2 would do. Empty where the
/// step's records do not tell.
using Predictor = std::optional<double> (*)(const WatchedStep& step, int scale_log2);

/// Share of the nonzero activation gradients that the cast flushes.
[[nodiscard]] std::optional<double> flushed_share(const WatchedStep& step, int scale_log2);
/// Largest share of an activation gradient's sum of magnitudes that the cast flushes.
[[nodiscard]] std::optional<double> worst_flushed_magnitude(const WatchedStep& step, int scale_log2);
/// Largest underflow error of an activation gradient.
[[nodiscard]] std::optional<double> worst_underflow(const WatchedStep& step, int scale_log2);
/// Squares of the underflow errors added up from the loss to each weight; the root of their median over the
/// weights.
[[nodiscard]] std::optional<double> summed_underflow(const WatchedStep& step, int scale_log2);
/// Median error of the weight gradients, measured by a backward pass at that scale.
[[nodiscard]] std::optional<double> probed_error(const WatchedStep& step, int scale_log2);

/// The predictor that the advisor's tolerance is about.
inline constexpr std::string_view advisor_predictor = "worst flushed magnitude";

struct PredictorEntry {
  std::string_view name;
  Predictor predict;
};

inline constexpr std::array predictor_table{
    PredictorEntry{"flushed share", flushed_share},
    PredictorEntry{advisor_predictor, worst_flushed_magnitude},
    PredictorEntry{"worst underflow error", worst_underflow},
    PredictorEntry{"summed underflow error", summed_underflow},
    PredictorEntry{"probed error", probed_error},
};

}  // namespace halfscope
