// Sorts positions by row, checks sizes and loops over the rows.
#include <algorithm>
#include <string>

#include <halfscope/core/parallel.hpp>

#include "lib/nn/embedding.hpp"
#include "lib/nn/sizes.hpp"

namespace halfscope {
namespace {

/// The features of a row of a table and of the positions.
std::int64_t features_of(const RowIndex& index, const ConstArrayView& table, const ConstArrayView& x) {
  const auto size = static_cast<std::int64_t>(table.size());
  const std::int64_t features = index.rows() == 0 ? 0 : size / index.rows();
  if (size != features * index.rows() ||
      static_cast<std::int64_t>(x.size()) != features * index.positions()) {
    throw InvalidArgument("embedding: a table of " + std::to_string(size) + " numbers and " +
                          std::to_string(x.size()) + " numbers at its positions do not fit " +
                          std::to_string(index.rows()) + " rows and " + std::to_string(index.positions()) +
                          " positions");
  }
  return features;
}

std::int64_t embeddings_per_task(std::int64_t features) {
  return std::max<std::int64_t>(1, elements_per_task / std::max<std::int64_t>(1, features));
}

}  // namespace

RowIndex::RowIndex(std::span<const std::int32_t> taken, std::int64_t rows, AbsentRows absent) {
  const bool zeros = absent == AbsentRows::zeros;
  std::vector<std::int32_t> first(static_cast<std::size_t>(rows) + 1), position(taken.size());
  for (const std::int32_t row : taken) {
    if (zeros && row == no_row) continue;
    if (row < 0 || row >= rows) {
      throw InvalidArgument("embedding: row " + std::to_string(row) + " is not in [0, " +
                            std::to_string(rows) + ")");
    }
    ++first[static_cast<std::size_t>(row) + 1];
  }
  for (std::size_t r = 1; r < first.size(); ++r) first[r] += first[r - 1];
  std::vector<std::int32_t> next(first.begin(), first.end() - 1);
  for (std::size_t p = 0; p < taken.size(); ++p) {
    if (taken[p] == no_row) continue;
    position[static_cast<std::size_t>(next[static_cast<std::size_t>(taken[p])]++)] =
        static_cast<std::int32_t>(p);
  }
  row_ = Memory<std::int32_t>::from(taken);
  first_ = Memory<std::int32_t>::from(first);
  position_ = Memory<std::int32_t>::from(position);
}

void gather_rows(const ConstArrayView& rows, const RowIndex& index, const ArrayView& taken) {
  const std::int64_t features = features_of(index, rows, taken);
  if (active_device() == Device::cuda) return cuda::gather_rows(rows, index, taken);
  const std::span<const float> table = rows.floats();
  const std::span<float> y = taken.floats();
  parallel_for_ranges(index.positions(), embeddings_per_task(features),
                      [&](std::int64_t first, std::int64_t count) {
                        for (std::int64_t p = first; p < first + count; ++p) {
                          const std::int32_t row = index.row()[static_cast<std::size_t>(p)];
                          float* const to = y.data() + p * features;
                          if (row == no_row) {
                            std::fill_n(to, features, 0.0f);
                          } else {
                            std::copy_n(table.data() + row * features, features, to);
                          }
                        }
                      });
}

void sum_rows(const ConstArrayView& values, const RowIndex& index, std::span<float> sums) {
  const std::int64_t features = features_of(index, sums, values);
  if (active_device() == Device::cuda) return cuda::sum_rows(values, index, sums);
  const std::span<const float> x = values.floats();
  const std::int32_t* first = index.first().data();
  const std::int32_t* position = index.position().data();
  parallel_for_ranges(index.rows(), embeddings_per_task(features),
                      [&](std::int64_t from, std::int64_t count) {
                        for (std::int64_t r = from; r < from + count; ++r) {
                          float* sum = sums.data() + r * features;
                          std::fill_n(sum, features, 0.0f);
                          for (std::int32_t k = first[r]; k < first[r + 1]; ++k) {
                            const float* add = x.data() + position[k] * features;
                            for (std::int64_t i = 0; i < features; ++i) sum[i] += add[i];
                          }
                        }
                      });
}

}  // namespace halfscope
