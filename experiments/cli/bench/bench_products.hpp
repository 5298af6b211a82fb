// Products of matrices that `halfscope bench` times beside Eigen's in FP32.
#pragma once

#include <string_view>

#include <halfscope/arithmetic/block_dot.hpp>

#include "experiments/cli/bench/bench.hpp"

namespace halfscope {

/// c = a b of FP16 numbers, uniform on [-1, 1), summed as the model says; matrices of `size` by `size`.
[[nodiscard]] BenchResult bench_product(std::string_view accumulate, int size);
/// c = a b^T in a block format, as a unit of Blackwell's tensor cores adds it up.
[[nodiscard]] BenchResult bench_block_product(std::string_view format, BlockScaledKind kind, int size);
/// A fused product on two threads, beside one.
[[nodiscard]] BenchResult bench_product_on_two_threads(int size);

}  // namespace halfscope
