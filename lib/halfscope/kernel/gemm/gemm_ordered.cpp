// Checks of the ordered product's request, and the model that it equals on each GPU.
#include <fmt/format.h>

#include <halfscope/kernel/gemm/gemm_ordered.hpp>

namespace halfscope {

void check_ordered_product(const DeviceProduct& product) {
  check_device_product(product, "gemm_ordered");
  if (product.input == DType::f32) {
    throw InvalidArgument(fmt::format("gemm_ordered: {}: tensor cores multiply f16 or bf16; use gemm_cublas",
                                      to_string(product)));
  }
}

TensorCore tensor_core_of_capability(ComputeCapability capability) {
  using enum TensorCoreGeneration;
  const int version = 10 * capability.major + capability.minor;
  if (version < 75) {
    throw InvalidArgument(fmt::format(
        "this GPU has compute capability {}.{}; ordered products need 7.5 (Turing) or newer, bf16 8.0",
        capability.major, capability.minor));
  }
  if (version < 80) return {turing};
  if (version < 89) return {ampere};
  if (version < 90) return {ada};
  return {version < 100 ? hopper : blackwell};
}

}  // namespace halfscope
