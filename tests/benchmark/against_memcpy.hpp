// Times an operation on an array beside memcpy of the same array, in the same run.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <halfscope/core/isa.hpp>
#include <halfscope/core/random.hpp>

namespace halfscope {

/// 4 MiB of floats: in the cache, not in the innermost ones.
inline constexpr std::size_t benchmark_size = std::size_t{1} << 20;

enum class Data : std::uint8_t { wide, normal };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<Data>{"wide", "normal"};

/// wide: log-uniform magnitudes from 2^-27 to 2^17 of either sign, as gradients are; normal: N(0, 1).
[[nodiscard]] inline std::vector<float> benchmark_data(Data data) {
  const RandomStream stream{.seed = 1};
  std::vector<float> values(benchmark_size);
  for (std::size_t i = 0; i < benchmark_size; ++i) {
    const float u = stream.uniform(2 * i);
    const float v = stream.uniform(2 * i + 1);
    const float wide = std::exp2(44 * u - 27) * (v < 0.5f ? -1.0f : 1.0f);
    const float normal = std::sqrt(-2 * std::log(1 - u)) * std::cos(6.2831853f * v);
    values[i] = data == Data::wide ? wide : normal;
  }
  return values;
}

template <typename Function>
[[nodiscard]] double seconds(Function&& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  benchmark::ClobberMemory();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Runs `operation(in, out)` on `data` for `isa`, memcpy in turn with it. Counters: elements/s, and
/// `memcpy_ratio`, the operation's speed as a share of memcpy's, both of the fastest iterations.
template <typename Operation>
void against_memcpy(benchmark::State& state, Isa isa, Data data, Operation operation) {
  const ForcedIsa forced(isa);
  const std::vector<float> in = benchmark_data(data);
  std::vector<float> out(in.size());
  double fastest = 1e9;
  double fastest_copy = 1e9;
  for (auto iteration : state) {
    (void)iteration;
    fastest_copy = std::min(fastest_copy,
                            seconds([&] { std::memcpy(out.data(), in.data(), in.size() * sizeof(float)); }));
    const double time = seconds([&] { operation(in, out); });
    fastest = std::min(fastest, time);
    state.SetIterationTime(time);
  }
  state.counters["elements/s"] = static_cast<double>(in.size()) / fastest;
  state.counters["memcpy_ratio"] = fastest_copy / fastest;
}

/// Registers `operation` under "NAME/ISA/DATA" for every instruction set and kind of data.
template <typename Operation>
void register_against_memcpy(const std::string& name, Operation operation) {
  for (const Isa isa : available_isas()) {
    for (const Data data : {Data::wide, Data::normal}) {
      const std::string full = name + "/" + std::string(name_of(isa)) + "/" + std::string(name_of(data));
      benchmark::RegisterBenchmark(
          full.c_str(), [=](benchmark::State& state) { against_memcpy(state, isa, data, operation); })
          ->UseManualTime()
          ->MinTime(0.1);
    }
  }
}

}  // namespace halfscope
