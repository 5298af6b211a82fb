// Work of a stream: a kernel, a copy or a fill, kept to be carried out later, or again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace halfscope::ptx {

enum class OperationKind : std::uint8_t { kernel, copy, fill, other };

struct Operation {
  OperationKind kind = OperationKind::other;
  std::string name;  ///< a kernel's, or a call's with the arguments that updates of a graph may not change
  std::function<void()> run;
};

/// Operations of a captured stream.
using Recording = std::vector<Operation>;

}  // namespace halfscope::ptx
