// Reading a checkpoint of PyTorch's beside reading the same tensors from safetensors.
#pragma once

#include "experiments/cli/bench/bench.hpp"

namespace halfscope {

/// All elements of 8 FP32 tensors of 8 MiB, from the zip archive that torch.save writes; in one thread, and
/// from files that the system has in memory.
[[nodiscard]] BenchResult bench_checkpoint();

}  // namespace halfscope
