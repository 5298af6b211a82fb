// Calls of the system on files, with errors as numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <halfscope/io/detail/descriptor.hpp>

namespace halfscope {

/// The system's words for `error`, an errno.
[[nodiscard]] std::string reason(int error);

/// Writes all of `contents`. Returns 0 or the errno.
[[nodiscard]] int write_all(const Descriptor& file, std::string_view contents);

/// Bytes that `write_all` has written in this process so far, which is all that goes to files.
[[nodiscard]] std::uint64_t bytes_written() noexcept;

/// Waits until the file's bytes are on the disk. Some file systems (FUSE, network) cannot say so, which is no
/// error. Returns 0 or the errno.
[[nodiscard]] int sync_file(const Descriptor& file);

}  // namespace halfscope
