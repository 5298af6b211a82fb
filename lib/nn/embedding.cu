// Embedding on the device, one thread per number.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/embedding.hpp"

namespace halfscope::cuda {
namespace {

struct GatherRows {
  ElementReader table;
  const std::int32_t* row;
  std::int64_t features;
  ElementWriter y;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int32_t from = row[i / features];
    y.set(i, from == no_row ? 0.0f : table[from * features + i % features]);
  }
};

struct SumRows {
  ElementReader x;
  const std::int32_t* first;
  const std::int32_t* position;
  std::int64_t features;
  float* sums;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = i / features, feature = i % features;
    float sum = 0;
    for (std::int32_t k = first[row]; k < first[row + 1]; ++k) sum += x[position[k] * features + feature];
    sums[i] = sum;
  }
};

}  // namespace

void gather_rows(const ConstArrayView& table, const RowIndex& index, const ArrayView& y) {
  const auto count = static_cast<std::int64_t>(y.size());
  if (count == 0) return;
  for_each(count,
           GatherRows{on_device(table), on_device(index.row()), count / index.positions(), on_device(y)},
           "gather_rows");
}

void sum_rows(const ConstArrayView& x, const RowIndex& index, std::span<float> sums) {
  const auto count = static_cast<std::int64_t>(sums.size());
  if (count == 0) return;
  for_each(count,
           SumRows{on_device(x), on_device(index.first()), on_device(index.position()), count / index.rows(),
                   on_device(sums)},
           "sum_rows");
}

}  // namespace halfscope::cuda
