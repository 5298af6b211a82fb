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
  double largest = 0;  ///< magnitude
};

/// Sums differences prediction by prediction, in their order.
class LogProbabilityGaps {
 public:
  /// The numbers of predictions are equal.
  void add(const std::vector<double>& first, const std::vector<double>& second);
  [[nodiscard]] LogProbabilityGap gap() const;

 private:
  std::int64_t count_ = 0;
  double sum_ = 0, squares_ = 0, largest_ = 0;
};

/// log p of each label, from the logits that `outcome` predicts with, in FP64. Throws InvalidArgument for a
/// model whose prediction is not a row of logits for each label.
[[nodiscard]] std::vector<double> label_log_probabilities(const Tape& tape, const BatchOutcome& outcome,
                                                          const Batch& batch);

}  // namespace halfscope
