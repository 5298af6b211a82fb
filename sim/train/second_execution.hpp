// Another execution of a trained model, and how far log-probabilities of two executions lie apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <halfscope/policy/policy.hpp>

#include "sim/models/model.hpp"

namespace halfscope {

/// "policy=NAME", or "order=ORDER" for the policy `own` with other sums of products. Throws
/// InvalidArgument for another text, and for a policy or a model that there is not.
[[nodiscard]] PrecisionPolicy parse_second_execution(const std::string& text, const PrecisionPolicy& own);

/// Differences of the labels' log-probabilities, the first execution's less the second's, in nats.
struct LogProbabilityGap {
  std::int64_t predictions = 0;
  double rms = 0;
  double mean = 0;
  double largest = 0;     ///< magnitude
  double divergence = 0;  ///< Kullback-Leibler, of the first execution from the second, mean over predictions
};

/// Logits of each label of a batch, in host memory.
struct LabelLogits {
  Array logits;  ///< (labels, classes)
  std::vector<std::int32_t> labels{};
};

/// Sums differences prediction by prediction, in their order.
class LogProbabilityGaps {
 public:
  /// Predictions of one batch in both executions.
  void add(const LabelLogits& first, const LabelLogits& second);
  [[nodiscard]] LogProbabilityGap gap() const;

 private:
  std::int64_t count_ = 0;
  double sum_ = 0, squares_ = 0, largest_ = 0, divergence_ = 0;
};

/// The logits that `outcome` predicts the labels with. Throws InvalidArgument for a model whose prediction is
/// not a row of logits for each label.
[[nodiscard]] LabelLogits label_logits(const Tape& tape, const BatchOutcome& outcome, const Batch& batch);

}  // namespace halfscope
