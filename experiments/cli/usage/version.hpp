// The version of the program, and what it was built from and with.
#pragma once

#include <string>

namespace halfscope {

/// "halfscope 0.2.0"
[[nodiscard]] std::string version_line();
/// The same with revision, compiler and whether CUDA's kernels are in it, a line each.
[[nodiscard]] std::string version_details();

}  // namespace halfscope
