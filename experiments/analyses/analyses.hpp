// The analyses: one line per analysis.
#pragma once

#include <array>
#include <vector>

#include "experiments/analyses/analysis.hpp"

namespace halfscope {

/// A table of the paper's with our results beside it.
[[nodiscard]] AnalysisResult find_published(const AnalysisInput& input);
/// First overflow of each arm that overflowed.
[[nodiscard]] AnalysisResult find_overflows(const AnalysisInput& input);
/// Gradients that all-reduces lost, of arms with several ranks.
[[nodiscard]] AnalysisResult find_all_reduce_losses(const AnalysisInput& input);
/// Shares that the FP32 arm's histograms predict to be flushed, beside those that were counted.
[[nodiscard]] AnalysisResult find_predictions(const AnalysisInput& input);
/// Which number of an FP32 run tells the loss scales that do harm.
[[nodiscard]] AnalysisResult find_harm(const AnalysisInput& input);
/// Errors of sums and dot products under every accumulation model, by their length.
[[nodiscard]] AnalysisResult find_accumulation(const AnalysisInput& input);
/// Errors of the sum over the uses of an RNN's weight, with and without the cast cache.
[[nodiscard]] AnalysisResult find_uses_of_weights(const AnalysisInput& input);
/// CTC with path likelihoods in FP16, beside FP32.
[[nodiscard]] AnalysisResult find_ctc(const AnalysisInput& input);
/// Errors of FP16 means of gradients over ranks, by order and division.
[[nodiscard]] AnalysisResult find_all_reduces(const AnalysisInput& input);
/// The longest run of constant scales at which every seed trains.
[[nodiscard]] AnalysisResult find_usable_scales(const AnalysisInput& input);
/// Loss scalers: those that never moved, and those that skip steps late.
[[nodiscard]] AnalysisResult find_loss_scalers(const AnalysisInput& input);
/// The largest weight of the loss at which an arm is not as good as its baseline.
[[nodiscard]] AnalysisResult find_harm_onset(const AnalysisInput& input);
/// Shares of FP32's decrease of the loss that arms miss, from where their training starts.
[[nodiscard]] AnalysisResult find_missed_decrease(const AnalysisInput& input);
/// Steps that each of a model's two losses skipped, and overflows that ended a run.
[[nodiscard]] AnalysisResult find_two_losses(const AnalysisInput& input);
/// Adam's mean square when it is rounded after each step.
[[nodiscard]] AnalysisResult find_mean_squares(const AnalysisInput& input);
/// Errors of FP8 dot products on tensor cores, with and without promotion.
[[nodiscard]] AnalysisResult find_fp8_sums(const AnalysisInput& input);
/// Errors of block formats, and of means of many roundings.
[[nodiscard]] AnalysisResult find_quantizer_errors(const AnalysisInput& input);
/// Attention's weights that E4M3 flushes, and the bias of its ties.
[[nodiscard]] AnalysisResult find_attention_rounding(const AnalysisInput& input);
/// A residual stream under truncation, beside its closed form.
[[nodiscard]] AnalysisResult find_one_sided_rounding(const AnalysisInput& input);
/// Gaps between logits from which a softmax has no gradient.
[[nodiscard]] AnalysisResult find_softmax_gaps(const AnalysisInput& input);
/// Examples whose softmax has rounded to 1, from the zeros of the logits' gradients.
[[nodiscard]] AnalysisResult find_softmax_collapse(const AnalysisInput& input);
/// Learning rates at which weights of few bits do harm, beside what one FP32 run predicts.
[[nodiscard]] AnalysisResult find_where_master_copy(const AnalysisInput& input);
/// Positions that a loss averages over at which FP16 does harm, beside what one FP32 run predicts.
[[nodiscard]] AnalysisResult find_where_loss_scaling(const AnalysisInput& input);
/// The advisor's window from the first and last histograms of baselines, beside arms at constant scales.
[[nodiscard]] AnalysisResult find_advice_at_ends(const AnalysisInput& input);
/// Errors of sums by length beside their closed form, and the lengths at which they do harm.
[[nodiscard]] AnalysisResult find_where_fp32_sums(const AnalysisInput& input);

inline bool is_every(const Experiment& /*experiment*/) {
  return true;
}

/// In the order of a report.
inline constexpr std::array analyses{
    AnalysisEntry{"published", "a table of the paper's beside ours", find_published,
                  [](const Experiment& experiment) { return !experiment.published.empty(); }},
    AnalysisEntry{"overflows", "first overflow", find_overflows, is_every},
    AnalysisEntry{"all_reduce_losses", "gradients that all-reduces lost", find_all_reduce_losses, is_every},
    AnalysisEntry{"predictions", "flushed shares, predicted and counted", find_predictions,
                  [](const Experiment& experiment) { return !experiment.predicts_from.empty(); }},
    AnalysisEntry{"harm", "predictors of harm against trainings", find_harm,
                  [](const Experiment& experiment) { return !experiment.harm_tasks.empty(); }},
    AnalysisEntry{"accumulation", "errors of sums by accumulation model and length", find_accumulation},
    AnalysisEntry{"uses_of_weights", "errors of sums over the uses of a weight", find_uses_of_weights},
    AnalysisEntry{"ctc", "CTC with path likelihoods in FP16", find_ctc},
    AnalysisEntry{"all_reduces", "errors of FP16 means over ranks", find_all_reduces},
    AnalysisEntry{"usable_scales", "constant scales at which every seed trains", find_usable_scales},
    AnalysisEntry{"loss_scalers", "loss scalers that stand still or skip late", find_loss_scalers},
    AnalysisEntry{"advice_at_ends", "advice on first and last histograms, beside constant scales",
                  find_advice_at_ends},
    AnalysisEntry{"harm_onset", "the first weight of the loss that does harm", find_harm_onset},
    AnalysisEntry{"missed_decrease", "shares of FP32's decrease of the loss that arms miss",
                  find_missed_decrease},
    AnalysisEntry{"mean_squares", "Adam's mean square rounded after each step", find_mean_squares},
    AnalysisEntry{"fp8_sums", "errors of FP8 dot products on tensor cores", find_fp8_sums},
    AnalysisEntry{"quantizer_errors", "errors of block formats and of means of many roundings",
                  find_quantizer_errors},
    AnalysisEntry{"attention_rounding", "attention's weights in E4M3 and ties in BF16",
                  find_attention_rounding},
    AnalysisEntry{"one_sided_rounding", "truncation in a residual stream, beside its closed form",
                  find_one_sided_rounding},
    AnalysisEntry{"softmax_gaps", "gaps of logits without a gradient", find_softmax_gaps},
    AnalysisEntry{"softmax_collapse", "examples without a gradient", find_softmax_collapse},
    AnalysisEntry{"where_master_copy", "learning rates at which weights of few bits do harm",
                  find_where_master_copy},
    AnalysisEntry{"where_loss_scaling", "positions at which missing loss scaling does harm",
                  find_where_loss_scaling},
    AnalysisEntry{"where_fp32_sums", "lengths at which sums of few bits do harm", find_where_fp32_sums},
    AnalysisEntry{"two_losses", "skipped steps of both losses", find_two_losses},
};

/// Names that a definition may list, and a verdict ask for.
[[nodiscard]] std::vector<std::string_view> analysis_names();

/// The results in `folder` = DIR/<experiment> with the findings of the experiment's analyses. Throws
/// InvalidArgument, with the file, for a malformed record.
[[nodiscard]] ExperimentSummary analyse(const Experiment& experiment, const std::filesystem::path& folder);

/// Adds the findings to `summary`, which has none.
void add_findings(const Experiment& experiment, const std::filesystem::path& folder,
                  ExperimentSummary& summary);

}  // namespace halfscope
