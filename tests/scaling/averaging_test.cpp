// Windows after averaging, against all-reduces of equal gradients at every scale.
#include <halfscope/scaling/averaging.hpp>

#include <halfscope/kernel/reduce/all_reduce.hpp>

#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"

namespace halfscope::averaging_test {
namespace {

TensorFit fit_of(const std::vector<float>& values) {
  ExponentHistogram histogram;
  histogram.add(values);
  return fit_tensor("g", histogram, {.tolerance = 0});
}

/// Whether nothing of the gradient is flushed or overflows at this scale, on so many ranks.
bool survives(float gradient, int scale_log2, std::int64_t ranks, double predivide) {
  GradientDivision division;
  division.rule = nullptr;
  division.factor = predivide;
  AllReduce all_reduce(parse_all_reduce("nccl_tree"), division, {.ranks = ranks, .elements = 1});
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    all_reduce.put(rank, std::vector<float>{std::ldexp(gradient, scale_log2)});
  std::vector<float> mean(1);
  const AllReduceCounters counters = all_reduce.finish(mean);
  return counters.addends_flushed == 0 && counters.addends_overflowed == 0 && std::isfinite(mean[0]);
}

TEST_CASE("a window after averaging has the scales at which equal gradients survive", "[averaging]") {
  for (const std::int64_t ranks : {1, 8, 512}) {
    for (double predivide = 1; predivide <= static_cast<double>(ranks); predivide *= 8) {
      INFO(ranks << " ranks, divided by " << predivide);
      const TensorFit fit = averaged(fit_of({0x1p-10f}), {ranks, predivide});
      // Powers of two are exact as long as they are not flushed: 2^-24 is the smallest.
      CHECK(survives(0x1p-10f, fit.overflow_high, ranks, predivide));
      CHECK_FALSE(survives(0x1p-10f, fit.overflow_high + 1, ranks, predivide));
      const int smallest = -14 + static_cast<int>(std::log2(predivide));
      CHECK(survives(0x1p-10f, smallest, ranks, predivide));
      CHECK_FALSE(survives(0x1p-10f, smallest - 1, ranks, predivide));
      CHECK(fit.underflow_low - fit_of({0x1p-10f}).underflow_low == smallest + 14);
    }
  }
}

TEST_CASE("averaging always takes log2 of the ranks, at the end that f chooses", "[averaging]") {
  const TensorFit alone = fit_of({0x1p-10f, 0x1.8p-3f});
  for (const double predivide : {1.0, 2.0, 64.0, 4096.0}) {
    const TensorFit fit = averaged(alone, {4096, predivide});
    CHECK((alone.overflow_high - alone.underflow_low) - (fit.overflow_high - fit.underflow_low) == 12);
    CHECK(fit.underflow_low == alone.underflow_low + static_cast<int>(std::log2(predivide)));
  }
  const TensorFit odd = averaged(alone, {3, 2});  // 3 / 2 counts as 2
  CHECK((odd.underflow_low == alone.underflow_low + 1 && odd.overflow_high == alone.overflow_high - 1));
  const TensorFit lifted = averaged(alone, {8, 0.5});  // nothing is gained below
  CHECK((lifted.underflow_low == alone.underflow_low && lifted.overflow_high == alone.overflow_high - 4));
  CHECK(averaged({.name = "zeros", .any_scale = true}, {8, 1}).overflow_high == 0);
}

TEST_CASE("rules of division say by what they divide before the sum", "[averaging]") {
  const auto factor = [](const char* rule) {
    return averaging_of(parse_gradient_division(rule), 64).predivide;
  };
  for (const char* rule : {"ddp", "megatron", "nccl_avg", "fp16_compress_hook"}) CHECK(factor(rule) == 64);
  for (const char* rule : {"deepspeed", "horovod", "sum"}) CHECK(factor(rule) == 1);
  CHECK(factor("fsdp") == 8);
  CHECK(factor("2.5") == 2.5);
}

}  // namespace
}  // namespace halfscope::averaging_test
