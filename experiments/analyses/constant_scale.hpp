// Loss scales of arms.
#pragma once

#include <cmath>
#include <optional>
#include <string>

namespace halfscope {

/// The exponent of a setting loss_scale that is a power of two, such as 1024; empty for others and for
/// scalers.
[[nodiscard]] inline std::optional<int> constant_scale_log2(const std::string& loss_scale) {
  const char* const begin = loss_scale.c_str();
  char* end = nullptr;
  const double scale = std::strtod(begin, &end);
  int exponent = 0;
  if (end == begin || *end != '\0' || !(scale > 0) || std::frexp(scale, &exponent) != 0.5)
    return std::nullopt;
  return exponent - 1;
}

}  // namespace halfscope
