// Version, revision and compiler of this build.
#include "experiments/cli/usage/version.hpp"

#include <fmt/format.h>

#include "sim/train/environment.hpp"

namespace halfscope {

std::string version_line() {
  return fmt::format("halfscope {}", build().version);
}

std::string version_details() {
  const Build found = build();
  return fmt::format("{}\nrevision: {}\ncompiler: {}\nCUDA: {}", version_line(), found.revision,
                     found.compiler, HALFSCOPE_CUDA_KERNELS != 0 ? "yes" : "no");
}

}  // namespace halfscope
