// Which native product there is, and what it is handed.
#include <halfscope/kernel/gemm/detail/gemm_native.hpp>

#include <algorithm>

namespace halfscope {
namespace {

DType stored_type(DType storage) {
  if (storage == DType::f32) return DType::f32;
  return storage == DType::f16 ? DType::f16 : DType::bf16;
}

/// All of a matrix that lies in memory as one.
DeviceMatrix matrix_of(const GatherMatrix& a) {
  return {a.data.data, a.stride, a.layout};
}

DeviceProduct product_of(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c) {
  return {.rows = std::ssize(a.row),
          .depth = b.rows,
          .columns = b.columns,
          .input = stored_type(a.data.storage),
          .sum = DType::f32,
          .output = DType::f32,
          .a = {},
          .b = {b.data.data, b.columns, MatrixLayout::row_major},
          .c = c.data(),
          .c_stride = b.columns};
}

/// Stored rows begin where the fastest copies want them to.
constexpr std::int64_t aligned(std::int64_t elements) {
  return (elements + 7) / 8 * 8;
}

}  // namespace

ProductMethod product_method(DType a, DType b, const AccumulateModel& model,
                             const std::optional<TensorCore>& core) {
  if (model.order == AccumulateOrder::cublas) {
    if (a == b) return ProductMethod::library;
    throw InvalidArgument("gemm: " + to_string(model) + " multiplies numbers of one format, not " +
                          std::string(name_of(a)) + " with " + std::string(name_of(b)));
  }
  const bool is_ours = model.order == AccumulateOrder::tensor_core && core == model.core && a != DType::f32 &&
                       a == b && model.format == format_of(a);
  return is_ours ? ProductMethod::ordered : ProductMethod::emulated;
}

void for_native_products(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c,
                         const std::function<void(const DeviceProduct&)>& run, std::int64_t most_bytes) {
  DeviceProduct product = product_of(a, b, c);
  if (a.stride > 0) {
    product.a = matrix_of(a);
    return run(product);
  }
  const std::int64_t all_rows = product.rows, depth = product.depth;
  const auto element = static_cast<std::int64_t>(bytes_per_element(a.data.storage));
  constexpr std::int64_t fewest = 64;
  const std::int64_t fitting = most_bytes / std::max<std::int64_t>(1, depth * element) / fewest * fewest;
  const std::int64_t piece = std::clamp(fitting, fewest, std::max(fewest, all_rows));
  const bool plain = a.layout == MatrixLayout::row_major;
  const std::int64_t lines = plain ? std::min(piece, all_rows) : depth;
  const std::int64_t widest = aligned(plain ? depth : std::min(piece, all_rows));
  const auto bytes = static_cast<std::size_t>(lines * widest * element);
  // Numbers between stored rows are read with their neighbours, though never multiplied.
  const bool is_padded = widest > (plain ? depth : std::min(piece, all_rows));
  Memory<std::byte> gathered = is_padded ? Memory<std::byte>::zeros(bytes) : Memory<std::byte>(bytes);
  for (std::int64_t first = 0; first < all_rows; first += piece) {
    product.rows = std::min(piece, all_rows - first);
    cuda::gather_matrix(a, {first, product.rows, widest, gathered.data()});
    product.a = {gathered.data(), widest, a.layout};
    product.c = c.data() + first * product.columns;
    run(product);
  }
}

}  // namespace halfscope
