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

float magnitude_of(float code) {
  return std::isfinite(code) ? std::abs(code) : 0;
}

/// Whether rows spread over the matrix all reach the largest code; with scales of columns one in three does
/// not. Nearly all files have scales of rows, and are then not read whole.
bool sample_reaches(std::size_t size, const ReadCodes& read) {
  constexpr std::size_t sampled = 64;
  if (size <= sampled) return false;
  std::vector<float> row(size), maxima;
  for (std::size_t i = 0; i < sampled; ++i) {
    read(static_cast<std::int64_t>(i * size / sampled * size), row);
    maxima.push_back(magnitude_of(*std::ranges::max_element(row, {}, magnitude_of)));
  }
  return std::ranges::min(maxima) > 0 && all_reach(maxima, std::ranges::max(maxima));
}

}  // namespace

std::string why_maybe_of_columns(const std::vector<std::int64_t>& shape,
                                 const std::vector<std::int64_t>& scales, const ReadCodes& read) {
  if (shape.size() != 2 || shape[0] != shape[1] || shape[0] < 2 || scales.size() != 1) return "";
  const auto size = static_cast<std::size_t>(shape[0]);
  if (sample_reaches(size, read)) return "";
  std::vector<float> row(size), rows(size), columns(size);
  for (std::size_t i = 0; i < size; ++i) {
    read(static_cast<std::int64_t>(i * size), row);
    for (std::size_t j = 0; j < size; ++j) {
      const float magnitude = magnitude_of(row[j]);
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
