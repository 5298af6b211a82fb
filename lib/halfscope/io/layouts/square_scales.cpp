// The scale of a row or a column takes its largest magnitude to the largest code.
#include <halfscope/io/layouts/detail/square_scales.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {
namespace {

bool all_reach(std::span<const float> maxima, float largest) {
  constexpr float nearly = 0.99f;  // 126 of 127
  return std::ranges::all_of(maxima, [&](float x) { return x == 0 || x >= nearly * largest; });
}

}  // namespace

std::string why_maybe_of_columns(const std::vector<std::int64_t>& shape,
                                 const std::vector<std::int64_t>& scales, const ReadCodes& read) {
  if (shape.size() != 2 || shape[0] != shape[1] || shape[0] < 2 || scales.size() != 1) return "";
  const auto size = static_cast<std::size_t>(shape[0]);
  std::vector<float> row(size), rows(size), columns(size);
  for (std::size_t i = 0; i < size; ++i) {
    read(static_cast<std::int64_t>(i * size), row);
    for (std::size_t j = 0; j < size; ++j) {
      const float magnitude = std::isfinite(row[j]) ? std::abs(row[j]) : 0;
      rows[i] = std::max(rows[i], magnitude);
      columns[j] = std::max(columns[j], magnitude);
    }
  }
  const float largest = std::ranges::max(rows);
  if (all_reach(rows, largest) || !all_reach(columns, largest)) return "";
  return fmt::format(
      "its scales of shape {} may be those of its columns, as each column reaches the largest "
      "code, and not each row; save them with the shape (1, {}) or ({}, 1)",
      to_string(scales), shape[0], shape[0]);
}

}  // namespace halfscope
