// Rows that several tiles share are put together before they count.
#include <halfscope/passes/detail/row_errors.hpp>

#include <algorithm>
#include <cmath>

namespace halfscope {
namespace {

constexpr std::int64_t most_kept_rows = std::int64_t{1} << 20;
constexpr double worth_a_look = 0.01;  // share of flushed values

/// Magnitudes up to this share of the largest number of an element become zero: half of the smallest one.
double flushed_below(const FloatFormat& element) {
  return std::ldexp(1.0, element.min_exponent() - element.mantissa_bits - 1);
}

/// Counts values that a scale of each row would flush, and finds the largest one.
void look_at_row(std::span<const float> row, double share, std::int64_t index, SharedScale& found) {
  float largest = 0;
  std::int64_t place = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const float magnitude = std::abs(row[i]);
    if (!std::isfinite(magnitude) || magnitude <= largest) continue;
    largest = magnitude;
    place = static_cast<std::int64_t>(i);
  }
  const double limit = share * double{largest};
  for (const float x : row) found.flushed_by_rows += x != 0 && std::abs(double{x}) <= limit ? 1 : 0;
  if (largest > found.largest) {
    found.largest = largest;
    found.row = index;
    found.column = place;
  }
}

}  // namespace

RowErrorList::RowErrorList(const MatrixShape& matrix, std::size_t formats)
    : matrix_(matrix),
      step_(std::max<std::int64_t>(1, (matrix.rows + most_kept_rows - 1) / most_kept_rows)),
      found_(formats),
      errors_(formats) {}

void RowErrorList::add(const MatrixTile& tile, const FormatCounter::SumsByFormat& sums) {
  if (tile.column == 0) {
    band_ = sums;
  } else {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      for (std::size_t row = 0; row < sums[i].size(); ++row) {
        band_[i][row].signal += sums[i][row].signal;
        band_[i][row].error += sums[i][row].error;
      }
    }
  }
  if (tile.column + tile.shape.columns < matrix_.columns) return;
  for (std::size_t i = 0; i < band_.size(); ++i)
    for (std::size_t row = 0; row < band_[i].size(); ++row)
      add_row(i, tile.row + static_cast<std::int64_t>(row), band_[i][row]);
}

void RowErrorList::add_row(std::size_t format, std::int64_t row, const RowSums& sums) {
  if (sums.signal == 0) return;
  const double error = std::sqrt(sums.error / sums.signal);
  RowErrors& found = found_[format];
  ++found.rows;
  if (row % step_ == 0) errors_[format].push_back(static_cast<float>(error));
  if (error <= found.worst) return;
  found.worst = error;
  found.worst_row = row;
}

void RowErrorList::finish(std::vector<FormatCounts>& formats) {
  for (std::size_t i = 0; i < formats.size(); ++i) {
    std::vector<float>& errors = errors_[i];
    if (!errors.empty()) {
      const auto middle = errors.begin() + std::ssize(errors) / 2;
      std::ranges::nth_element(errors, middle);
      found_[i].median = double{*middle};
    }
    formats[i].rows = found_[i];
  }
}

void find_shared_scales(const TensorMatrix& matrix, std::span<const TensorFormat> formats,
                        std::vector<FormatCounts>& counts) {
  std::vector<float> buffer;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (!counts[i].scale_log2 || flushed_share(counts[i].counts) <= worth_a_look) continue;
    const FloatFormat& element = element_format(formats[i]);
    const double below = flushed_below(element), share = below / double{largest_element(formats[i])};
    SharedScale found{.flushed_up_to = static_cast<float>(std::ldexp(below, *counts[i].scale_log2))};
    const auto columns = static_cast<std::size_t>(matrix.shape().columns);
    for (const MatrixTile& tile : matrix.whole_rows()) {
      if (tile.shape.columns != matrix.shape().columns) return;  // rows beyond memory
      const std::span<const float> values = matrix.tile(tile, buffer);
      for (std::int64_t row = 0; row < tile.shape.rows; ++row)
        look_at_row(values.subspan(static_cast<std::size_t>(row) * columns, columns), share, tile.row + row,
                    found);
    }
    counts[i].shared = found;
  }
}

}  // namespace halfscope
