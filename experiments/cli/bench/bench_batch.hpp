// Cases of `halfscope bench` that multiply many matrices at a time.
#pragma once

#include <string_view>

#include "experiments/cli/bench/bench.hpp"

namespace halfscope {

/// 128 products of 64 x 64 x 64, the right factors transposed, beside one product of as many operations.
[[nodiscard]] BenchResult bench_batch(std::string_view accumulate);
/// The same on two threads beside one.
[[nodiscard]] BenchResult bench_batch_on_two_threads();

}  // namespace halfscope
