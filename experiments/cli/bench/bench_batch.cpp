// Products of many small matrices beside one large one.
#include "experiments/cli/bench/bench_batch.hpp"

#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/core/random.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/gemm/gemm_batch.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t extent = 64, products = 128, matrix = extent * extent;
constexpr double gigaflop = 2e-9 * products * matrix * extent;

/// FP16 numbers, uniform on [-1, 1), and their products.
struct SmallProducts {
  explicit SmallProducts(std::string_view accumulate) : model(parse_accumulate_model(accumulate)) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = 2 * RandomStream{.seed = 3}.uniform(i) - 1;
      b[i] = 2 * RandomStream{.seed = 4}.uniform(i) - 1;
    }
    for (std::vector<float>* values : {&a, &b}) round(*values, *values, Quantizer{.format = fp16});
    for (std::int64_t n = 0; n < products; ++n) start.push_back(n * matrix);
  }

  void many(int threads) {
    set_thread_count(threads);
    gemm_batch({a.data(), start, extent, extent, extent}, {b.data(), start, extent, extent, 1, extent}, c,
               model);
    set_thread_count(1);
  }
  void one() {
    const std::span<const std::int64_t> first(start.data(), 1);
    gemm_batch({a.data(), first, products * extent, extent, extent},
               {b.data(), first, extent, extent, extent}, c, model);
  }

  AccumulateModel model;
  std::vector<float> a = std::vector<float>(static_cast<std::size_t>(products * matrix)), b = a, c = a;
  std::vector<std::int64_t> start;
};

}  // namespace

BenchResult bench_batch(std::string_view accumulate) {
  SmallProducts small(accumulate);
  const Times times = time_in_turn([&] { small.many(1); }, [&] { small.one(); });
  return {gigaflop / times.ours, "GFLOP/s", times.ratio, "one product"};
}

BenchResult bench_batch_on_two_threads() {
  SmallProducts small("fp32_fused");
  const Times times = time_in_turn([&] { small.many(2); }, [&] { small.many(1); });
  return {gigaflop / times.ours, "GFLOP/s", times.ratio, "one thread"};
}

}  // namespace halfscope
