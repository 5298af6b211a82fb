// Counted dot products: the same sum as the plain ones, and counts that can be worked out by hand.
#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/arithmetic/counted_dot.hpp>

#include <halfscope/format/round.hpp>

#include <limits>
#include <vector>

#include "tests/support/catch.hpp"

namespace halfscope::counted_dot_test {
namespace {

TensorCoreStep volta() {
  return tensor_core_step({TensorCoreGeneration::volta}, fp16, fp32);
}

ReductionCounters counters_of(const std::vector<float>& a, const std::vector<float>& b, float c,
                              const TensorCoreStep& step = volta()) {
  ReductionCounters counters;
  static_cast<void>(counted_dot(a, b, c, step, counters));
  return counters;
}

TEST_CASE("counting changes no sum", "[counted_dot]") {
  for (const TensorCoreEntry& entry : tensor_core_table) {
    for (const std::size_t size : std::vector<std::size_t>{0, 1, 31, 100}) {
      std::vector<float> a(size), b(size);
      for (std::size_t i = 0; i < size; ++i) {
        a[i] = round(static_cast<float>(i % 7) - 3, {.format = entry.step.input});
        b[i] = round(0.25f * static_cast<float>(i % 5), {.format = entry.step.input});
      }
      ReductionCounters counters;
      CHECK(counted_dot(a, b, 0, entry.step, counters) == dot(a, b, 0, entry.step));
      CHECK(counters.reductions == 1);
      CHECK(counters.terms == static_cast<std::int64_t>(size));
    }
  }
}

TEST_CASE("fused sums are counted add by add", "[counted_dot]") {
  const std::vector<float> ones(3000, 1.0f), large(12, 128.0f);
  ReductionCounters counters;
  CHECK(counted_fused_dot(ones, ones, fp16, counters) == 2048);
  CHECK(counters.stagnated == 3000 - 2048);
  CHECK(counters.largest_partial_sum == 2048);
  CHECK(counted_fused_dot(ones, ones, fp16, counters) ==
        accumulate_products(ones, ones, {.format = fp16, .order = AccumulateOrder::fused}));
  ReductionCounters overflow;
  CHECK(counted_fused_dot(large, large, fp16, overflow) == std::numeric_limits<float>::infinity());
  CHECK(overflow.first_overflow == 3);
  CHECK(overflow.largest_partial_sum == 49152);
}

TEST_CASE("a step whose products vanish beside the sum has stagnated; one of zeros has not",
          "[counted_dot]") {
  // Volta adds four products a step and keeps 23 bits below the largest: 2^-24 beside 1 is cut off.
  const std::vector<float> small(8, 0x1p-12f);
  CHECK(counters_of(small, small, 1).stagnated == 2);
  CHECK(counters_of(small, small, 0).stagnated == 0);
  CHECK(counters_of(std::vector<float>(8, 0.0f), small, 1).stagnated == 0);
  CHECK(counters_of(small, small, 1).largest_partial_sum == 1);
}

TEST_CASE("the first step that overflows is named, once", "[counted_dot]") {
  const TensorCoreStep& step = tensor_core_step({TensorCoreGeneration::volta}, fp16, fp16);
  const std::vector<float> a(12, 128.0f), b(12, 128.0f);  // 65536 after one step of four
  const ReductionCounters counters = counters_of(a, b, 0, step);
  CHECK(counters.overflowed == 1);
  CHECK(counters.first_overflow == 0);
  CHECK(counters.largest_partial_sum == 0);
  const std::vector<float> ones(12, 1.0f);
  CHECK(counters_of(a, ones, 64000, step).first_overflow == 2);
  CHECK(counters_of(a, ones, 64000, step).largest_partial_sum == 65024);
  CHECK(counters_of(ones, ones, std::numeric_limits<float>::infinity(), step).overflowed == 0);
}

}  // namespace
}  // namespace halfscope::counted_dot_test
