// Parses second executions and compares logits.
#include "sim/train/second_execution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include <halfscope/core/error.hpp>
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/policy/policy_texts.hpp>

#include "sim/train/recorded_keys.hpp"

namespace halfscope {
namespace {

std::vector<double> log_probabilities(std::span<const float> logits) {
  const auto largest = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  const double log_sum = std::log(sum);
  std::vector<double> logs;
  logs.reserve(logits.size());
  for (const float logit : logits) logs.push_back(static_cast<double>(logit) - largest - log_sum);
  return logs;
}

/// Kullback-Leibler divergence from a reference, in nats.
double divergence(std::span<const double> reference, std::span<const double> other) {
  double sum = 0;
  for (std::size_t i = 0; i < reference.size(); ++i)
    sum += std::exp(reference[i]) * (reference[i] - other[i]);
  return sum;
}

}  // namespace

PrecisionPolicy parse_second_execution(const std::string& text, const PrecisionPolicy& own) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string_view key = std::string_view(text).substr(0, equals);
  const std::string value = equals == text.size() ? "" : text.substr(equals + 1);
  if (key == "policy" && !value.empty()) return named_policy(value);
  refuse_recorded_key(key);
  if (key != "order" || value.empty()) {
    throw InvalidArgument(fmt::format("second_execution = '{}': give policy=NAME or order=ORDER", text));
  }
  PrecisionPolicy other = own;
  other.products = parse_accumulate_model(value);
  check_product_model(other.products);
  check_operand_sums(other);
  return other;
}

void LogProbabilityGaps::add(const LabelLogits& first, const LabelLogits& second) {
  const std::size_t rows = first.labels.size(),
                    classes = first.logits.size() / std::max<std::size_t>(rows, 1);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto logs_of = [&](const LabelLogits& execution) {
      return log_probabilities(execution.logits.values().subspan(row * classes, classes));
    };
    const std::vector<double> ours = logs_of(first), theirs = logs_of(second);
    const auto label = static_cast<std::size_t>(first.labels[row]);
    const double difference = ours[label] - theirs[label];
    ++count_;
    sum_ += difference;
    squares_ += difference * difference;
    largest_ = std::max(largest_, std::fabs(difference));
    divergence_ += divergence(theirs, ours);
  }
}

LogProbabilityGap LogProbabilityGaps::gap() const {
  const auto count = static_cast<double>(count_);
  return {count_, std::sqrt(squares_ / count), sum_ / count, largest_, divergence_ / count};
}

LabelLogits label_logits(const Tape& tape, const BatchOutcome& outcome, const Batch& batch) {
  const auto rows = std::ssize(batch.labels);
  Array logits = outcome.predictions.empty() ? Array() : to_host_floats(tape.value(outcome.predictions[0]));
  const std::int64_t classes = rows == 0 ? 0 : std::ssize(logits.values()) / rows;
  if (classes < 2 || classes * rows != std::ssize(logits.values()) || outcome.predictions.size() != 1) {
    throw InvalidArgument(
        "second_execution compares probabilities of labels: the model predicts no row of logits for each "
        "label; choose a classifier or a language model");
  }
  return {std::move(logits), batch.labels};
}

}  // namespace halfscope
