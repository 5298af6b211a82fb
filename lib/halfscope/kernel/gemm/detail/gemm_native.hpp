// Matrix products of numbers of any storage as the GPU's own units compute them: plain and transposed
// matrices where they lie, patches gathered first.
#pragma once

#include <functional>
#include <optional>

#include <halfscope/kernel/gemm/gemm.hpp>

namespace halfscope {

/// The tensor core of the GPU at hand; empty where there is none, as on the simulated device.
[[nodiscard]] std::optional<TensorCore> device_tensor_core();

/// How the device computes a product: with its FP32 units as the model says, on tensor cores of its own that
/// are the model's, or by cuBLAS.
enum class ProductMethod : std::uint8_t { emulated, ordered, library };
/// Throws InvalidArgument where `model` wants a library that does not multiply a's numbers with b's.
[[nodiscard]] ProductMethod product_method(DType a, DType b, const AccumulateModel& model,
                                           const std::optional<TensorCore>& core);

/// Calls `run` with products that make up c = a b, of operands of one storage in the device's memory. Patches
/// are copied into a matrix for it, `most_bytes` of them at a time, or 64 rows where those are more.
void for_native_products(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c,
                         const std::function<void(const DeviceProduct&)>& run,
                         std::int64_t most_bytes = std::int64_t{128} << 20);

namespace cuda {
/// to (rows, depth), or where a is transposed (depth, rows), its stored rows `stride` apart: the elements of
/// `rows` rows of a from `first` on.
struct GatheredRows {
  std::int64_t first, rows, stride;
  void* to;
};
void gather_matrix(const GatherMatrix& a, const GatheredRows& rows);
/// The product by cuBLAS or on tensor cores.
void multiply_native(ProductMethod method, const DeviceProduct& product);
}  // namespace cuda

}  // namespace halfscope
