// Text on stderr, the only way to it: a reader that is gone or a full disk never stops what is computed.
#pragma once

#include <string_view>

namespace halfscope {

/// Writes `text` to stderr, line ends included. Text that cannot be written is dropped. Safe in several
/// threads: a short text is one call of the system.
void print_stderr(std::string_view text) noexcept;

}  // namespace halfscope
