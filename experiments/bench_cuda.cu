// Times kernels on the device with events, two in turn, medians of each.
#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <vector>

#include <halfscope/core/random.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/gemm_cublas.hpp>
#include <halfscope/kernel/gemm_ordered.hpp>
#include <halfscope/kernel/launch.cuh>
#include <halfscope/kernel/round.hpp>

#include "experiments/bench_cuda.hpp"

namespace halfscope {
namespace {

struct FreeMemory {
  void operator()(void* memory) const { cudaFree(memory); }
};
using Memory = std::unique_ptr<void, FreeMemory>;

Memory allocate(std::size_t bytes) {
  void* memory = nullptr;
  cuda::check(cudaMalloc(&memory, bytes), "bench: cudaMalloc");
  return Memory(memory);
}

template <typename T>
Memory copied(const std::vector<T>& values) {
  Memory memory = allocate(values.size() * sizeof(T));
  cuda::check(cudaMemcpy(memory.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
              "bench: copy to the device");
  return memory;
}

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Event = std::unique_ptr<CUevent_st, DestroyEvent>;

Event make_event() {
  cudaEvent_t event = nullptr;
  cuda::check(cudaEventCreate(&event), "bench: cudaEventCreate");
  return Event(event);
}

/// Seconds per call of `calls` calls in a row on the default stream.
double device_seconds(const std::function<void()>& function, int calls) {
  const Event start = make_event(), end = make_event();
  cuda::check(cudaEventRecord(start.get()), "bench: cudaEventRecord");
  for (int i = 0; i < calls; ++i) function();
  cuda::check(cudaEventRecord(end.get()), "bench: cudaEventRecord");
  cuda::check(cudaEventSynchronize(end.get()), "bench: timed kernels");
  float milliseconds = 0;
  cuda::check(cudaEventElapsedTime(&milliseconds, start.get(), end.get()), "bench: cudaEventElapsedTime");
  return milliseconds * 1e-3 / calls;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Both in turn, 21 samples of five calls each, after three calls to warm up.
Times device_times(const std::function<void()>& ours, const std::function<void()>& others) {
  (void)device_seconds(ours, 3);
  (void)device_seconds(others, 3);
  std::vector<double> our_times, other_times;
  for (int sample = 0; sample < 21; ++sample) {
    our_times.push_back(device_seconds(ours, 5));
    other_times.push_back(device_seconds(others, 5));
  }
  return {median(our_times), median(other_times)};
}

/// Why nothing can be measured; empty where it can.
std::string missing_device() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices > 0) return {};
  return std::string("no CUDA device: ") +
         (status == cudaSuccess ? "the driver sees none" : cudaGetErrorString(status));
}

BenchResult skipped(std::string why) {
  BenchResult result;
  result.skipped = std::move(why);
  return result;
}

constexpr std::int64_t size = 4096;
constexpr double teraflop = 2e-12 * size * size * size;

/// Random numbers in [-1, 1): what runs on zeros is faster than what runs on data.
template <typename T>
std::vector<T> random_matrix(StoredType type, std::uint64_t seed) {
  const RandomStream stream{.seed = seed};
  const FloatFormat format = type == StoredType::f16 ? fp16 : type == StoredType::bf16 ? bf16 : fp32;
  std::vector<T> values(static_cast<std::size_t>(size * size));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(encode(round(2 * stream.uniform(i) - 1, {.format = format}), format));
  return values;
}

/// Two matrices and their product on the device.
struct Operands {
  explicit Operands(const DeviceProduct& types) : product(types) {
    const bool wide = types.input == StoredType::f32;
    a = wide ? copied(random_matrix<std::uint32_t>(types.input, 1))
             : copied(random_matrix<std::uint16_t>(types.input, 1));
    b = wide ? copied(random_matrix<std::uint32_t>(types.input, 2))
             : copied(random_matrix<std::uint16_t>(types.input, 2));
    c = allocate(static_cast<std::size_t>(size * size) * 4);
    product.rows = product.depth = product.columns = product.c_stride = size;
    product.a = {a.get(), size};
    product.b = {b.get(), size};
    product.c = c.get();
  }
  DeviceProduct product;
  Memory a, b, c;
};

}  // namespace

BenchResult bench_cuda_round() {
  if (std::string why = missing_device(); !why.empty()) return skipped(std::move(why));
  constexpr std::size_t count = std::size_t{1} << 26;
  const RandomStream stream{.seed = 1};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 2 * stream.uniform(i) - 1;
  const Memory in = copied(values), out = allocate(count * 4);
  const auto* from = static_cast<const float*>(in.get());
  auto* to = static_cast<float*>(out.get());
  const Times times =
      device_times([&] { round_cuda(from, to, count, {.format = fp16}, {}, nullptr); },
                   [&] {
                     cuda::check(cudaMemcpyAsync(to, from, count * 4, cudaMemcpyDeviceToDevice),
                                 "bench: copy on the device");
                   });
  return {8e-9 * count / times.ours, "GB/s", times.others / times.ours, "device copy"};
}

BenchResult bench_cuda_ordered(StoredType input, StoredType sum) {
  if (std::string why = missing_device(); !why.empty()) return skipped(std::move(why));
  const Operands operands({.input = input, .sum = sum, .output = input});
  const Times times = device_times([&] { gemm_ordered(operands.product, nullptr); },
                                   [&] { gemm_cublas(operands.product, nullptr); });
  return {teraflop / times.ours, "TFLOP/s", times.others / times.ours, "cuBLAS"};
}

BenchResult bench_cuda_cublas() {
  if (std::string why = missing_device(); !why.empty()) return skipped(std::move(why));
  const Operands half({.output = StoredType::f16}), single({.input = StoredType::f32});
  const Times times = device_times([&] { gemm_cublas(half.product, nullptr); },
                                   [&] { gemm_cublas(single.product, nullptr); });
  return {teraflop / times.ours, "TFLOP/s", times.others / times.ours, "cuBLAS in fp32"};
}

}  // namespace halfscope
