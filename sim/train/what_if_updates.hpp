// Shares of an FP32 run's updates that weights of fewer bits would apply, at its own learning rate and
// others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/device/array.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/stats/tracker.hpp>

#include "sim/tape/parameter.hpp"

namespace halfscope {

/// Powers of two that multiply the learning rate.
inline constexpr int least_rate_log2 = -16, most_rate_log2 = 6;

/// Updates of all weights of a step, added to weights that are stored in `format`, rounded to nearest, at
/// 2^rate_log2 times the learning rate. The updates are the FP32 run's own, multiplied: to another rate
/// belong other weights and gradients, of which this knows nothing.
struct WhatIfUpdates {
  std::string format;
  int rate_log2 = 0;
  std::int64_t nonzero = 0, lost = 0;
  UpdateProjection projection{};
};
[[nodiscard]] Json to_json(const WhatIfUpdates& row);

/// Formats with names separated by commas, none of an empty text. Throws InvalidArgument for a format that
/// there is not, or that is named twice.
[[nodiscard]] std::vector<FloatFormat> parse_weight_formats(std::string_view names);

/// Asks about the updates of a step, parameter by parameter; sums are in double, in the order of the
/// elements.
class UpdateQuestions {
 public:
  /// A row per format and rate is added to `rows`, or to those that an earlier loss of the step has left.
  /// Nothing is asked where `rows` is null; it and `formats` outlive this.
  UpdateQuestions(const std::vector<FloatFormat>& formats, std::vector<WhatIfUpdates>* rows);

  /// A parameter before its update, and after it.
  void before(const Parameter& parameter);
  void after(const Parameter& parameter);

 private:
  [[nodiscard]] bool asks() const { return rows_ != nullptr && !rows_->empty(); }

  std::vector<FloatFormat> formats_;
  std::vector<WhatIfUpdates>* rows_;
  Array before_{};  ///< in host memory
};

}  // namespace halfscope
