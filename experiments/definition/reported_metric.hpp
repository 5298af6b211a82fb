// Metric that an experiment compares its arms by.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <halfscope/core/names.hpp>

namespace halfscope {

/// How two values of a metric are compared in a sentence.
enum class Comparison : std::uint8_t { points, difference, ratio };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<Comparison>{"points", "difference", "ratio"};

struct ReportedMetric {
  std::string key = "metric";  ///< key in a run's summary.json: the model's own metric, or a loss
  std::string name = "test accuracy";
  std::string unit = "%";  ///< empty for a plain number
  Comparison comparison = Comparison::points;
  bool lower_is_better = false;
  int digits = 2;  ///< after the decimal point

  bool operator==(const ReportedMetric&) const = default;
};

}  // namespace halfscope
