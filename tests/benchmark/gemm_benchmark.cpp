// How fast matrix products with a named order are, beside Eigen's float product in the same run.
#include <benchmark/benchmark.h>

#include <Eigen/Core>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <halfscope/core/isa.hpp>
#include <halfscope/core/random.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

namespace halfscope {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// FP16 numbers, uniform on [-1, 1).
std::vector<float> operand(std::int64_t size, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(size * size));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * RandomStream{seed}.uniform(i) - 1;
  round(values, values, Quantizer{.format = fp16});
  return values;
}

template <typename Function>
double seconds(Function&& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  benchmark::ClobberMemory();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Counters: GFLOP/s of the product, and `eigen_ratio`, its speed as a share of Eigen's, in turn with it and
/// on one thread; both of the fastest iterations.
void against_eigen(benchmark::State& state, Isa isa, const AccumulateModel& model, std::int64_t size) {
  const ForcedIsa forced(isa);
  const std::vector<float> a = operand(size, 1), b = operand(size, 2);
  std::vector<float> c(a.size());
  const auto rows = strided_offsets(size, size), columns = strided_offsets(size, 1);
  const Eigen::Map<const Matrix> eigen_a(a.data(), size, size), eigen_b(b.data(), size, size);
  Matrix eigen_c(size, size);
  double fastest = 1e9;
  double fastest_eigen = 1e9;
  for (auto iteration : state) {
    (void)iteration;
    fastest_eigen = std::min(fastest_eigen, seconds([&] { eigen_c.noalias() = eigen_a * eigen_b; }));
    const double time = seconds([&] {
      gemm({a.data(), rows.values(), columns.values(), MatrixLayout::row_major, size}, {b.data(), size, size},
           c, model);
    });
    fastest = std::min(fastest, time);
    state.SetIterationTime(time);
  }
  const double operations = 2e-9 * static_cast<double>(size * size) * static_cast<double>(size);
  state.counters["GFLOP/s"] = operations / fastest;
  state.counters["eigen_ratio"] = fastest_eigen / fastest;
}

[[maybe_unused]] const bool registered = [] {
  for (const char* name : {"fp32_sequential", "fp32_chunked(256)", "fp16_sequential", "fp16_fused",
                           "fp16_chunked(64)", "bf16_sequential", "tensor_core(volta)", "tensor_core(ampere)",
                           "tensor_core(hopper)", "bf16_tensor_core(hopper)"}) {
    for (const std::int64_t size : {256, 1024}) {
      for (const Isa isa : available_isas()) {
        const std::string full =
            "gemm/" + std::string(name) + "/" + std::to_string(size) + "/" + std::string(name_of(isa));
        const AccumulateModel model = parse_accumulate_model(name);
        benchmark::RegisterBenchmark(full.c_str(),
                                     [=](benchmark::State& state) { against_eigen(state, isa, model, size); })
            ->UseManualTime()
            ->MinTime(0.1);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace halfscope
