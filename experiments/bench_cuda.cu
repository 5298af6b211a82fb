// Times kernels on the device with events, two in turn, medians of each.
#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <halfscope/core/memory.hpp>
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

using Bytes = Memory<std::byte>;

Bytes allocate(std::size_t bytes) {
  return Bytes(bytes, Device::cuda);
}

template <typename T>
Bytes copied(const std::vector<T>& values) {
  return Bytes::from(std::as_bytes(std::span(values)), Device::cuda);
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

/// Seconds per call of `calls` calls in a row on this thread's stream.
double device_seconds(const std::function<void()>& function, int calls) {
  const Event start = make_event(), end = make_event();
  cuda::check(cudaEventRecord(start.get(), cuda::stream()), "bench: cudaEventRecord");
  for (int i = 0; i < calls; ++i) function();
  cuda::check(cudaEventRecord(end.get(), cuda::stream()), "bench: cudaEventRecord");
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
    product.a = {a.data(), size};
    product.b = {b.data(), size};
    product.c = c.data();
  }
  DeviceProduct product;
  Bytes a, b, c;
};

}  // namespace

BenchResult bench_cuda_round() {
  if (std::string why = missing_device(); !why.empty()) return skipped(std::move(why));
  constexpr std::size_t count = std::size_t{1} << 26;
  const RandomStream stream{.seed = 1};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 2 * stream.uniform(i) - 1;
  const DeviceScope scope(Device::cuda);
  const auto in = Memory<float>::from(values);
  Memory<float> out(count);
  const Times times = device_times([&] { round(in.values(), out.values(), {.format = fp16}); },
                                   [&] {
                                     cuda::check(cudaMemcpyAsync(out.data(), in.data(), count * sizeof(float),
                                                                 cudaMemcpyDeviceToDevice, cuda::stream()),
                                                 "bench: copy on the device");
                                   });
  return {8e-9 * count / times.ours, "GB/s", times.others / times.ours, "device copy"};
}

BenchResult bench_cuda_ordered(StoredType input, StoredType sum) {
  if (std::string why = missing_device(); !why.empty()) return skipped(std::move(why));
  const Operands operands({.input = input, .sum = sum, .output = input});
  const Times times = device_times([&] { gemm_ordered(operands.product, cuda::stream()); },
                                   [&] { gemm_cublas(operands.product, cuda::stream()); });
  return {teraflop / times.ours, "TFLOP/s", times.others / times.ours, "cuBLAS"};
}

BenchResult bench_cuda_cublas() {
  if (std::string why = missing_device(); !why.empty()) return skipped(std::move(why));
  const Operands half({.output = StoredType::f16}), single({.input = StoredType::f32});
  const Times times = device_times([&] { gemm_cublas(half.product, cuda::stream()); },
                                   [&] { gemm_cublas(single.product, cuda::stream()); });
  return {teraflop / times.ours, "TFLOP/s", times.others / times.ours, "cuBLAS in fp32"};
}

}  // namespace halfscope
