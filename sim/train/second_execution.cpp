// Parses second executions and compares logits.
#include "sim/train/second_execution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include <halfscope/core/error.hpp>
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/policy/policy_texts.hpp>

#include "sim/train/recorded_keys.hpp"

namespace halfscope {

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

void LogProbabilityGaps::add(const std::vector<double>& first, const std::vector<double>& second) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double difference = first[i] - second[i];
    ++count_;
    sum_ += difference;
    squares_ += difference * difference;
    largest_ = std::max(largest_, std::fabs(difference));
  }
}

LogProbabilityGap LogProbabilityGaps::gap() const {
  const auto count = static_cast<double>(count_);
  return {count_, std::sqrt(squares_ / count), sum_ / count, largest_};
}

std::vector<double> label_log_probabilities(const Tape& tape, const BatchOutcome& outcome,
                                            const Batch& batch) {
  const std::size_t rows = batch.labels.size();
  const Array logits =
      outcome.predictions.empty() ? Array() : to_host_floats(tape.value(outcome.predictions[0]));
  const std::span<const float> x = logits.values();
  const std::size_t classes = rows == 0 ? 0 : x.size() / rows;
  if (classes < 2 || classes * rows != x.size() || outcome.predictions.size() != 1) {
    throw InvalidArgument(
        "second_execution compares probabilities of labels: the model predicts no row of logits for each "
        "label; choose a classifier or a language model");
  }
  std::vector<double> found;
  found.reserve(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<const float> row = x.subspan(r * classes, classes);
    const auto largest = static_cast<double>(*std::ranges::max_element(row));
    double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit) - largest);
    found.push_back(static_cast<double>(row[static_cast<std::size_t>(batch.labels[r])]) - largest -
                    std::log(sum));
  }
  return found;
}

}  // namespace halfscope
