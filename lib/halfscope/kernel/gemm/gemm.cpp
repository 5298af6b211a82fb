// Checks a matrix product and splits it over the threads.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/gemm/detail/product_kernel.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

namespace halfscope {

Memory<std::int32_t> strided_offsets(std::int64_t count, std::int64_t stride) {
  if (count * stride > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgument(
        fmt::format("a matrix of {} rows or columns, {} elements apart, is too large for one product; "
                    "use a smaller batch",
                    count, stride));
  }
  Memory<std::int32_t> offsets(static_cast<std::size_t>(count));
  if (active_device() == Device::cuda) {
    cuda::fill_strided(stride, offsets.values());
  } else {
    for (std::int64_t i = 0; i < count; ++i) offsets.data()[i] = static_cast<std::int32_t>(i * stride);
  }
  return offsets;
}

void check_product_model(const AccumulateModel& model) {
  if (model.order == AccumulateOrder::tensor_core) {
    (void)product_step(model);
    return;
  }
  if (model.order == AccumulateOrder::matrix_core) {
    (void)matrix_core_step(model.matrix_core, model.format);
    return;
  }
  check_sum_format(model.format);
  if (model.order == AccumulateOrder::chunked && model.chunk < 1) {
    throw InvalidArgument("a matrix product's chunk holds at least one term");
  }
  if (model.order == AccumulateOrder::sequential || model.order == AccumulateOrder::chunked ||
      model.order == AccumulateOrder::cublas) {
    return;
  }
  if (model.order == AccumulateOrder::fused) return check_fused_format(model.format);
  throw InvalidArgument(
      "matrix products add up sequentially, fused, in chunks or as tensor and matrix cores do, not in " +
      to_string(model) + "; only sums of single terms take that");
}

void check_device_product_model(const AccumulateModel& model) {
  check_product_model(model);
  const bool is_device_core =
      model.order == AccumulateOrder::tensor_core && model.chunk == 0 && !model.core.is_free();
  const bool is_unit =
      model.order == AccumulateOrder::tensor_core || model.order == AccumulateOrder::matrix_core;
  if (!is_unit || is_device_core) return;
  throw InvalidArgument(to_string(model) +
                        " is computed on the CPU alone; give device = cpu, or a model that the device has");
}

void gemm(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c, const AccumulateModel& model) {
  const auto rows = static_cast<std::int64_t>(a.row.size());
  const auto depth = static_cast<std::int64_t>(a.column.size());
  if (depth != b.rows || static_cast<std::int64_t>(c.size()) != rows * b.columns) {
    throw InvalidArgument(fmt::format("gemm: ({}, {}) times ({}, {}) does not give {} elements", rows, depth,
                                      b.rows, b.columns, c.size()));
  }
  if (active_device() == Device::cuda) {
    check_device_product_model(model);
    return cuda::gemm(a, b, c, model);
  }
  const ProductKernel kernel(model);
  (void)a.data.floats();
  (void)b.data.floats();
  if (depth == 0 || c.empty()) {  // the loops point into a, b and c
    std::ranges::fill(c, 0.0f);
    return;
  }
  const ProductSplit split = kernel.split({rows, depth, b.columns});
  const RightMatrix right{b.data.floats(), b.columns, b.columns};
  parallel_for(split.pieces(),
               [&](std::int64_t piece) noexcept { kernel.run(a, right, c.data(), split.piece(piece)); });
}

}  // namespace halfscope
