// Files that grow by whole lines: appended to, read line by line, cut back to an earlier length.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string_view>

namespace halfscope {

/// The first bytes of a file that grows: how many, and their CRC-32 (that of zip and gzip).
struct FileExtent {
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;

  /// Takes in what was appended.
  void add(std::string_view contents);
  friend bool operator==(const FileExtent&, const FileExtent&) = default;
};

/// Adds `contents` at the end of the file at `path`, which is made where there is none, and waits until they
/// are on the disk. On failure the file is cut back to its former length. Throws RuntimeFailure with the path
/// and the system's reason.
void append_to_file(const std::filesystem::path& path, std::string_view contents);

/// Cuts the file at `path` to its first `bytes`; none is the same as an empty one. Throws RuntimeFailure.
void cut_file(const std::filesystem::path& path, std::uint64_t bytes);

/// Takes a line without its end, and the line's number from 1.
using LineFunction = std::function<void(std::string_view line, std::size_t number)>;

/// Hands over the lines in the first `most` bytes of the file at `path`, which is read in pieces. A last line
/// without its end is left out: it is still being written. Returns the bytes that were read. Throws
/// InvalidArgument where the file cannot be read, RuntimeFailure where reading fails half-way.
FileExtent read_lines(const std::filesystem::path& path, const LineFunction& take,
                      std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

}  // namespace halfscope
