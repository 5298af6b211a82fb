// Loss scales of arms.
#pragma once

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

namespace halfscope {

/// The exponent of a power of two; nothing for any other number.
[[nodiscard]] inline std::optional<int> exact_log2(double number) {
  int exponent = 0;
  if (!(number > 0) || std::frexp(number, &exponent) != 0.5) return std::nullopt;
  return exponent - 1;
}

/// The exponent of a setting loss_scale that is a power of two, such as 1024; empty for others and for
/// scalers.
[[nodiscard]] inline std::optional<int> constant_scale_log2(const std::string& loss_scale) {
  const char* const begin = loss_scale.c_str();
  char* end = nullptr;
  const double scale = std::strtod(begin, &end);
  return end == begin || *end != '\0' ? std::nullopt : exact_log2(scale);
}

}  // namespace halfscope
