// Thresholds on what `halfscope analyze` finds: --fail-on 'flushed>2%'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/cli/analyze/analyze.hpp"

namespace halfscope {

/// "2%", "0.02", "2 %" as a share from 0 to 1; throws InvalidArgument naming `what`.
[[nodiscard]] double parse_share(std::string_view what, std::string_view text);

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

/// "METRIC>SHARE" or "METRIC>=SHARE"; throws InvalidArgument.
[[nodiscard]] Threshold parse_threshold(std::string_view text);
/// The names of the metrics, with commas.
[[nodiscard]] std::string threshold_metrics();

struct OverThreshold {
  std::string tensor;
  double share = 0;
};

/// The tensors, or updates, of `analysis` that reach `threshold`.
[[nodiscard]] std::vector<OverThreshold> find_over(const Threshold& threshold, const Analysis& analysis);

}  // namespace halfscope
