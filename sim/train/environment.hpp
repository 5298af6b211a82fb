// The machine and the program that a run was made with.
#pragma once

#include <string>

#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {

/// "AMD EPYC 9354", as Linux names it; "unknown" where it does not.
[[nodiscard]] std::string processor_name();

/// Revision and compiler that the program was built with.
struct Build {
  std::string version, revision, compiler;
};
[[nodiscard]] Build build();

/// Version, git revision, compiler, processor, instruction set, GPU, the CUDA versions of its driver and
/// of the runtime, and threads; null where there is none.
[[nodiscard]] Json environment();

}  // namespace halfscope
