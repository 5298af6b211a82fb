// The paper's bigLSTM story: a language model needs its loss scaled.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// The settings that every experiment on this language model starts from.
[[nodiscard]] Settings language_model_settings();
/// The same with the loss averaged over 256 times as many positions, as large batches have.
[[nodiscard]] Settings large_batch_language_model_settings();
/// Changes at full size: all words of the text, 1024 hidden units, and a loss over 64 positions of each of
/// `batch` sequences.
[[nodiscard]] Settings language_model_full_settings(std::int64_t batch);
/// Metric of its experiments.
[[nodiscard]] ReportedMetric test_perplexity();

}  // namespace halfscope
