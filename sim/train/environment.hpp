// The machine and the program that a run was made with.
#pragma once

#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {

/// Version, git revision, compiler, processor, instruction set, GPU, the CUDA versions of its driver and
/// of the runtime, and threads; null where there is none.
[[nodiscard]] Json environment();

}  // namespace halfscope
