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
  std::string name;  ///< a kernel's, or the call and what an update of a recording may not change
  std::function<void()> run;
};

/// Operations of a captured stream.
using Recording = std::vector<Operation>;

}  // namespace halfscope::ptx
