// Sums over ranks beside a copy of their addends.
#pragma once

#include <cstdint>

#include "experiments/cli/bench/bench.hpp"

namespace halfscope {

/// Counted adds of all ranks' addends in one thread, against copying those once: memory bounds both.
[[nodiscard]] BenchResult bench_all_reduce(std::string_view model, std::int64_t ranks, std::int64_t elements);

}  // namespace halfscope
