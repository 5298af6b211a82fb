// Thresholds on what `halfscope analyze` finds: --fail-on 'flushed>2%'.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/cli/analyze/analyze.hpp"

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
/// Whether the metric is one of weight updates, not of tensors.
[[nodiscard]] bool is_of_updates(const Threshold& threshold);

/// The threshold's metric of a tensor; nothing where it has no elements to judge by.
[[nodiscard]] std::optional<double> value_of(const Threshold& threshold, const AnalyzedTensor& tensor);
/// Lost updates as a share of the finite ones that are not zero; nothing where no update is finite.
[[nodiscard]] std::optional<double> lost_updates_share(const UpdateReport& update);

struct OverThreshold {
  std::string tensor;
  double share = 0;
};
struct ThresholdResult {
  std::size_t judged = 0;           ///< tensors, or updates, that have a value
  std::vector<OverThreshold> over;  ///< tensors that reach the threshold
};
[[nodiscard]] ThresholdResult judge(const Threshold& threshold, const Analysis& analysis);

}  // namespace halfscope
