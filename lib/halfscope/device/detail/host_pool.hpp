// The pool of free host memory, as tests see it.
#pragma once

#include <cstddef>

namespace halfscope::detail {

/// The pool keeps at most twice the memory that was ever in use at once.
struct HostPoolBytes {
  std::size_t kept = 0, most_used = 0;
};
[[nodiscard]] HostPoolBytes host_pool_bytes();

}  // namespace halfscope::detail
