// Windows of loss scales, and what the advisor is told, as Python has them.
#pragma once

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <halfscope/core/error.hpp>
#include <halfscope/scaling/advisor.hpp>
#include <utility>

namespace halfscope::python {

/// (low, high), or None.
[[nodiscard]] inline std::optional<std::pair<int, int>> low_and_high(
    const std::optional<ScaleWindow>& window) {
  if (!window) return std::nullopt;
  return std::pair(window->low, window->high);
}

/// Throws InvalidArgument for what is no share.
[[nodiscard]] inline double checked_tolerance(double tolerance) {
  if (tolerance >= 0 && tolerance <= 1) return tolerance;
  throw InvalidArgument(fmt::format("tolerance = {}: give a share from 0 to 1, such as 0.2", tolerance));
}

}  // namespace halfscope::python
