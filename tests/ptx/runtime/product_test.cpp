// The product that stands for cuBLAS's: its orders of sums, layouts and gaps, and the calls that it refuses.
#include <cublas_v2.h>

#include "tests/ptx/runtime/product.hpp"
#include "tests/ptx/runtime/runtime_objects.hpp"
#include "tests/support/native_matrices.hpp"

namespace halfscope::ptx::product_test {
namespace {

using enum MatrixLayout;
constexpr auto f16 = DType::f16, b16 = DType::bf16, f32 = DType::f32;

template <typename Code>
std::vector<Code> multiplied(const NativeCase& c, const ComputeCapability& capability) {
  GlobalMemory memory;
  const auto put = [&](const std::vector<std::uint16_t>& codes) {
    const std::uint64_t address = memory.allocate(2 * codes.size());
    memory.write(address, std::as_bytes(std::span(codes)));
    return reinterpret_cast<void*>(address);
  };
  const NativeMatrix a = native_a(c), b = native_b(c);
  const std::int64_t stride = c.columns + 1 + c.gap;
  std::vector<Code> out(static_cast<std::size_t>(c.rows * stride), Code{0x5A5A});
  const std::uint64_t to = memory.allocate(out.size() * sizeof(Code));
  memory.write(to, std::as_bytes(std::span(out)));
  multiply(memory,
           {.rows = c.rows,
            .depth = c.depth,
            .columns = c.columns,
            .input = c.input,
            .sum = c.sum,
            .output = c.output,
            .a = {put(a.codes), a.stride, c.a_layout},
            .b = {put(b.codes), b.stride, c.b_layout},
            .c = reinterpret_cast<void*>(to),
            .c_stride = stride},
           capability);
  memory.read(std::as_writable_bytes(std::span(out)), to);
  return out;
}

template <typename Code>
void check_is_tensor_core(const NativeCase& c) {
  INFO(to_string(c));
  const std::int64_t stride = c.columns + 1 + c.gap;
  for (const ComputeCapability& capability : {ComputeCapability{8, 0}, ComputeCapability{9, 0}}) {
    const std::vector<Code> out = multiplied<Code>(c, capability);
    const std::vector<float> expected = modelled_product(c, tensor_core_of_capability(capability));
    CHECK(count_different(out, stride, expected, c) == 0);
    for (std::int64_t row = 0; row < c.rows; ++row)
      CHECK(out[static_cast<std::size_t>(row * stride + c.columns)] == Code{0x5A5A});
  }
}

TEST_CASE("products of 16-bit numbers add up as the tensor core does", "[ptx][cublas]") {
  for (const MatrixLayout a : {row_major, transposed}) {
    for (const MatrixLayout b : {row_major, transposed}) {
      check_is_tensor_core<std::uint32_t>({33, 100, 17, a, b, f16, f32, f32, 3});
      check_is_tensor_core<std::uint16_t>({33, 100, 17, a, b, f16, f32, f16});
      check_is_tensor_core<std::uint16_t>({33, 100, 17, a, b, f16, f16, f16, 3});
      check_is_tensor_core<std::uint16_t>({33, 100, 17, a, b, b16, f32, b16});
    }
  }
}

TEST_CASE("products of f32 numbers are fused and in ascending order", "[ptx][cublas]") {
  const std::vector<float> a{-1, 1 + 0x1p-12f, 0x1p24f, 1, -0x1p24f}, b{1, 1 + 0x1p-12f, 1, 1, 1};
  const std::vector<float> expected{-1, 0x1p-11f + 0x1p-24f, 0x1p24f, 0x1p24f, 0};
  GlobalMemory memory;
  const auto put = [&](const std::vector<float>& values) {
    const std::uint64_t address = memory.allocate(values.size() * sizeof(float));
    memory.write(address, std::as_bytes(std::span(values)));
    return reinterpret_cast<void*>(address);
  };
  for (const std::int64_t depth : {1, 2, 3, 4, 5}) {
    const std::uint64_t c = memory.allocate(sizeof(float));
    multiply(memory,
             {.rows = 1,
              .depth = depth,
              .columns = 1,
              .input = f32,
              .sum = f32,
              .output = f32,
              .a = {put(a), depth},
              .b = {put(b), 1},
              .c = reinterpret_cast<void*>(c),
              .c_stride = 1},
             {8, 0});
    float sum = 0;
    memory.read(std::as_writable_bytes(std::span(&sum, 1)), c);
    CHECK(sum == expected[static_cast<std::size_t>(depth - 1)]);
  }
}

/// cublasGemmEx of one element; the numbers are f32, or as many bytes of another type.
struct Gemm {
  float alpha = 1, beta = 0;
  cudaDataType type = CUDA_R_32F, output = CUDA_R_32F;
  std::int64_t stride = 1;
};
cublasStatus_t run(const Gemm& g, cublasHandle_t handle, const DeviceNumber& from, const DeviceNumber& to) {
  return cublasGemmEx_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &g.alpha, from.memory, g.type, g.stride,
                         from.memory, g.type, g.stride, &g.beta, to.memory, g.output, g.stride,
                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

TEST_CASE("cuBLAS's product is work of its stream, and is refused where it is not what it stands for",
          "[ptx][cublas]") {
  const StreamOrderScope late(StreamOrder::late);
  const TestStream own;
  const DeviceNumber two(0x4000'0000), product(0);  // two as f32
  const PinnedNumber seen(77);
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasSetStream(handle, own.stream) == CUBLAS_STATUS_SUCCESS);
  CHECK(run({.alpha = 2}, handle, two, product) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(run({.beta = 1}, handle, two, product) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(run({.type = CUDA_R_64F}, handle, two, product) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(run({.output = CUDA_R_16F}, handle, two, product) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(run({.stride = 0}, handle, two, product) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(run({}, handle, two, product) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cudaMemcpyAsync(seen.value, product.memory, 8, cudaMemcpyDefault, own.stream) == cudaSuccess);
  CHECK(*seen.value == 77);
  REQUIRE(cudaStreamSynchronize(own.stream) == cudaSuccess);
  CHECK(*seen.value == 0x4080'0000);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}

TEST_CASE("cuBLAS's handles are not made in a capture", "[ptx][cublas][capture]") {
  const TestStream own;
  cublasHandle_t handle = nullptr;
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(own.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cudaStreamEndCapture(own.stream, &graph) == cudaErrorStreamCaptureInvalidated);
  (void)cudaGetLastError();
}

}  // namespace
}  // namespace halfscope::ptx::product_test
