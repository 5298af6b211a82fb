// Sums of columns over a sample of rows: first of squares, then of errors where few columns have the norm.
#include <halfscope/passes/detail/column_errors.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace halfscope {
namespace {

constexpr std::int64_t least_rows = 16;  // fewer of them are single numbers, not columns
constexpr std::int64_t sampled_rows = 256, most_elements = std::int64_t{1} << 24;
constexpr double uneven_norm = 4;

/// Rows of a band, in whole units: those of a matrix that is turned as it is read come from many places of
/// the file, so that single ones take as long as many.
std::int64_t band_rows(const MatrixShape& matrix, const MatrixShape& unit) {
  constexpr std::int64_t usual = 64;
  const std::int64_t rows = std::min(usual, most_elements / matrix.columns);
  return std::max<std::int64_t>(1, rows / unit.rows) * unit.rows;
}

/// Bands across the whole matrix, of about `sampled_rows` in all.
std::vector<MatrixTile> sample_tiles_of(const MatrixShape& matrix, const MatrixShape& unit) {
  const std::int64_t band = band_rows(matrix, unit), bands = (matrix.rows + band - 1) / band;
  const std::int64_t count = std::min(bands, std::max<std::int64_t>(2, sampled_rows / band));
  std::vector<MatrixTile> sample;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = i * bands / count * band;
    sample.push_back({row, 0, {std::min(band, matrix.rows - row), matrix.columns}});
  }
  return sample;
}

class ColumnSample {
 public:
  ColumnSample(const TensorMatrix& matrix, std::vector<MatrixTile> tiles)
      : matrix_(matrix),
        tiles_(std::move(tiles)),
        norms_(static_cast<std::size_t>(matrix.shape().columns), 0.0) {
    for_each_tile([&](std::span<const float> values, const MatrixTile&) { add_squares(values); });
    for (double& norm : norms_) norm = std::sqrt(norm);
  }

  /// The largest norm over the median of those that are not 0.
  [[nodiscard]] double norm_ratio() const {
    std::vector<double> norms;
    std::ranges::copy_if(norms_, std::back_inserter(norms), [](double norm) { return norm > 0; });
    if (norms.empty()) return 1;
    const auto middle = norms.begin() + std::ssize(norms) / 2;
    std::ranges::nth_element(norms, middle);
    return std::ranges::max(norms_) / *middle;
  }

  [[nodiscard]] std::int64_t largest() const { return std::ranges::max_element(norms_) - norms_.begin(); }

  [[nodiscard]] FormatCounter::SumsByFormat errors_of(const FormatCounter& counter) const {
    FormatCounter::SumsByFormat columns;
    for_each_tile([&](std::span<const float> values, const MatrixTile& tile) {
      counter.add_columns({values, tile.shape, tile.row * tile.shape.columns}, columns);
    });
    return columns;
  }

 private:
  template <typename Take>
  void for_each_tile(const Take& take) const {
    std::vector<float> buffer;
    for (const MatrixTile& tile : tiles_) take(matrix_.tile(tile, buffer), tile);
  }

  void add_squares(std::span<const float> values) {
    for (std::size_t at = 0; at < values.size(); at += norms_.size()) {
      const std::span<const float> row = values.subspan(at, norms_.size());
      for (std::size_t i = 0; i < row.size(); ++i)
        norms_[i] += std::isfinite(row[i]) ? double{row[i]} * double{row[i]} : 0.0;
    }
  }

  const TensorMatrix& matrix_;
  std::vector<MatrixTile> tiles_;
  std::vector<double> norms_;
};

ColumnErrors column_errors_of(std::span<const RowSums> columns) {
  std::vector<double> errors;
  for (const RowSums& sums : columns)
    if (sums.signal > 0) errors.push_back(std::sqrt(sums.error / sums.signal));
  if (errors.empty()) return {};
  std::ranges::sort(errors);
  return {.median = errors[errors.size() / 2], .worst_tenth = errors[errors.size() - 1 - errors.size() / 10]};
}

}  // namespace

void find_column_errors(const TensorMatrix& matrix, const MatrixShape& unit, const FormatCounter& counter,
                        std::vector<FormatCounts>& counts) {
  const MatrixShape& shape = matrix.shape();
  const bool is_small = shape.rows < least_rows || shape.columns < 2;
  if (is_small || unit.rows > most_elements / shape.columns) return;
  const ColumnSample sample(matrix, sample_tiles_of(shape, unit));
  const double ratio = sample.norm_ratio();
  if (!(ratio > uneven_norm)) return;
  const FormatCounter::SumsByFormat columns = sample.errors_of(counter);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    ColumnErrors& found = counts[i].columns.emplace(column_errors_of(columns[i]));
    found.largest = sample.largest();
    found.norm_ratio = ratio;
  }
}

}  // namespace halfscope
