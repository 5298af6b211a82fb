// Thresholds on what `halfscope analyze` finds: --fail-on 'flushed>2%'.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/cli/analyze/analyze.hpp"
#include "experiments/cli/tensors/named_shares.hpp"

namespace halfscope {

enum class Comparator : std::uint8_t { above, at_least };

/// A share of a tensor that must not be reached.
struct Threshold {
  std::string text;  ///< as it was given
  std::string metric;
  Comparator comparator = Comparator::above;
  double share = 0;

  [[nodiscard]] bool is_reached(double value) const {
    return comparator == Comparator::above ? value > share : value >= share;
  }
};

/// "METRIC>SHARE" or "METRIC>=SHARE", given to `option`; throws InvalidArgument.
[[nodiscard]] Threshold parse_threshold(std::string_view option, std::string_view text);
/// The names of the metrics, with commas.
[[nodiscard]] std::string threshold_metrics();

/// The threshold's metric of a tensor; nothing where it has no elements to judge by.
[[nodiscard]] std::optional<double> value_of(const Threshold& threshold, const AnalyzedTensor& tensor);

struct ThresholdResult {
  std::size_t judged = 0;        ///< tensors that have a value
  std::vector<NamedShare> over;  ///< tensors that reach the threshold
};
[[nodiscard]] ThresholdResult judge(const Threshold& threshold, const Analysis& analysis);

}  // namespace halfscope
