// Times kernels on the device with events, two in turn.
#include <cuda_runtime.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <halfscope/core/random.hpp>
#include <halfscope/device/memory.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/detail/launch.cuh>
#include <halfscope/kernel/gemm/gemm_cublas.hpp>
#include <halfscope/kernel/gemm/gemm_ordered.hpp>
#include <halfscope/stats/cast_counts.hpp>

#include "experiments/cli/bench/bench_cuda.hpp"
#include "lib/nn/optimizer_step.hpp"

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

/// Both in turn, 21 samples of five calls each, after three calls to warm up.
Times device_times(const std::function<void()>& ours, const std::function<void()>& others) {
  (void)device_seconds(ours, 3);
  (void)device_seconds(others, 3);
  std::vector<double> our_times, other_times;
  for (int sample = 0; sample < 21; ++sample) {
    our_times.push_back(device_seconds(ours, 5));
    other_times.push_back(device_seconds(others, 5));
  }
  return times_of(our_times, other_times);
}

constexpr std::int64_t size = 4096;
constexpr double teraflop = 2e-12 * size * size * size;

/// Random numbers in [-1, 1): what runs on zeros is faster than what runs on data.
template <typename T>
std::vector<T> random_matrix(DType type, std::uint64_t seed) {
  const RandomStream stream{.seed = seed};
  const FloatFormat format = format_of(type);
  std::vector<T> values(static_cast<std::size_t>(size * size));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(encode(round(2 * stream.uniform(i) - 1, {.format = format}), format));
  return values;
}

/// Two matrices and their product on the device.
struct Operands {
  explicit Operands(const DeviceProduct& types) : product(types) {
    const bool wide = types.input == DType::f32;
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

constexpr std::size_t pass_elements = std::size_t{1} << 26;

/// Numbers with the magnitudes of gradients, a few of which FP16 flushes.
Memory<float> random_floats(std::uint64_t seed) {
  const RandomStream stream{.seed = seed};
  std::vector<float> values(pass_elements);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float x = 2 * stream.uniform(i) - 1;
    values[i] = x * x * x * 0.01f;
  }
  return Memory<float>::from(values);
}

/// A pass and how many bytes it moves for each element.
struct TimedPass {
  std::function<void()> run;
  std::size_t bytes;
};

BenchResult against_copy(const TimedPass& pass) {
  const std::size_t bytes = pass.bytes / 2 * pass_elements;  // read once, written once
  const Bytes from = allocate(bytes), to = allocate(bytes);
  void* const out = const_cast<std::byte*>(to.data());
  const Times times = device_times(pass.run, [&] {
    cuda::check(cudaMemcpyAsync(out, from.data(), bytes, cudaMemcpyDeviceToDevice, cuda::stream()),
                "bench: copy on the device");
  });
  return {1e-9 * static_cast<double>(2 * bytes) / times.ours, "GB/s", times.ratio, "device copy"};
}

BenchResult bench_round() {
  const Memory<float> in = random_floats(1);
  Memory<float> out(pass_elements);
  return against_copy({[&] { round(in.values(), out.values(), {.format = fp16}); }, 8});
}

BenchResult bench_cast(CastDetail detail) {
  Memory<float> values = random_floats(1);
  Readback readback;
  QueuedCast cast({.format = fp16}, detail, readback);
  return against_copy({[&] { cast.round_and_count(values.values(), {}, readback); }, 8});
}

BenchResult bench_histogram() {
  Memory<float> values = random_floats(1);
  Readback readback;
  QueuedCast cast({}, CastDetail::histogram, readback);
  return against_copy({[&] { cast.round_and_count(values.values(), {}, readback); }, 4});
}

/// The step of Adam; where it is watched, as an update of weights that FP16 would store.
BenchResult bench_adam(std::optional<WeightStorage> watched) {
  const Memory<float> gradient = random_floats(1);
  Memory<float> weights = random_floats(2), first = random_floats(3),
                second = Memory<float>::zeros(pass_elements);
  Readback readback;
  const auto largest = readback.take<std::uint32_t>(1);
  const auto counters = readback.take<std::int64_t>(watch_counters);
  const auto sums = readback.take<UpdateSums>(update_tiles(pass_elements));
  WeightUpdate update{.gradient = gradient.values(),
                      .unscale = 0.5f,
                      .weights = weights.values(),
                      .largest = readback.device_values(largest)};
  if (watched) update.watch = {*watched, readback.device_values(counters), readback.device_values(sums)};
  const AdamStep step{.learning_rate = 1e-4f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
  const std::array slots{first.values(), second.values()};
  return against_copy({[&] { optimizer_step(update, step, {}, slots); }, 28});
}

}  // namespace

BenchResult bench_cuda_pass(DevicePass pass) {
  const DeviceScope scope(Device::cuda);
  switch (pass) {
    case DevicePass::round:
      return bench_round();
    case DevicePass::cast:
      return bench_cast(CastDetail::counters);
    case DevicePass::cast_histogram:
      return bench_cast(CastDetail::histogram);
    case DevicePass::histogram:
      return bench_histogram();
    case DevicePass::adam:
      return bench_adam({});
    case DevicePass::adam_watched:
      return bench_adam(WeightStorage{{.format = fp16}, {.format = fp16}, {}});
  }
  return {};
}

BenchResult bench_cuda_ordered(DType input, DType sum) {
  const Operands operands({.input = input, .sum = sum, .output = input});
  const Times times = device_times([&] { gemm_ordered(operands.product, cuda::stream()); },
                                   [&] { gemm_cublas(operands.product, cuda::stream()); });
  return {teraflop / times.ours, "TFLOP/s", times.ratio, "cuBLAS"};
}

BenchResult bench_cuda_cublas() {
  const Operands half({.output = DType::f16}), single({.input = DType::f32});
  const Times times = device_times([&] { gemm_cublas(half.product, cuda::stream()); },
                                   [&] { gemm_cublas(single.product, cuda::stream()); });
  return {teraflop / times.ours, "TFLOP/s", times.ratio, "cuBLAS in fp32"};
}

}  // namespace halfscope
