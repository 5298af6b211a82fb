// Checks the shapes of a matrix product and splits its rows over the threads.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/gemm.hpp>

namespace halfscope {

std::vector<std::int32_t> strided_offsets(std::int64_t count, std::int64_t stride) {
  if (count * stride > std::numeric_limits<std::int32_t>::max()) {
    throw RequestError(
        fmt::format("a matrix of {} rows or columns, {} elements apart, is too large for one product; "
                    "use a smaller batch",
                    count, stride));
  }
  std::vector<std::int32_t> offsets(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < offsets.size(); ++i)
    offsets[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) * stride);
  return offsets;
}

void check_product_model(const AccumulateModel& model) {
  if (model.order == AccumulateOrder::tensor_core) {
    (void)tensor_core_step(model.core, model.format, fp32);
    return;
  }
  if (model.order == AccumulateOrder::chunked && model.chunk < 1) {
    throw RequestError("a matrix product's chunk holds at least one term");
  }
  if (model.order == AccumulateOrder::sequential || model.order == AccumulateOrder::chunked) return;
  if (model.order == AccumulateOrder::fused) return check_fused_format(model.format);
  throw RequestError("matrix products add up sequentially, fused, in chunks or as tensor cores do, not in " +
                     to_string(model) + "; only sums of single terms take that");
}

void gemm(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c, const AccumulateModel& model) {
  const auto rows = static_cast<std::int64_t>(a.row.size());
  const auto depth = static_cast<std::int64_t>(a.column.size());
  if (depth != b.rows || static_cast<std::int64_t>(c.size()) != rows * b.columns) {
    throw RequestError(fmt::format("gemm: ({}, {}) times ({}, {}) does not give {} elements", rows, depth,
                                   b.rows, b.columns, c.size()));
  }
  check_product_model(model);
  const TensorCoreStep* step = model.order == AccumulateOrder::tensor_core
                                   ? &tensor_core_step(model.core, model.format, fp32)
                                   : nullptr;
  // Many more pieces than threads keep the threads level; rows per piece stay a multiple of every kernel's
  // tile.
  constexpr std::int64_t rows_per_tile = 24;
  const std::int64_t tiles = (rows + rows_per_tile - 1) / rows_per_tile;
  const std::int64_t pieces = std::min<std::int64_t>(tiles, 64);
  parallel_for(pieces, [&](std::int64_t piece) noexcept {
    const RowRange range{tiles * piece / pieces * rows_per_tile,
                         std::min(rows, tiles * (piece + 1) / pieces * rows_per_tile)};
    dispatch_isa([&]<Isa isa>() {
      if (step != nullptr) return gemm_tensor_core_rows_isa<isa>(a, b, c.data(), range, *step);
      gemm_rows_isa<isa>(a, b, c.data(), range, model);
    });
  });
}

}  // namespace halfscope
