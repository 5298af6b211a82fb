// Files that gzip has compressed.
#pragma once

#include <filesystem>
#include <string>

namespace halfscope {

/// The content of the file, which may also be uncompressed. Throws InvalidArgument, naming it, where it
/// cannot be read, is damaged or ends early.
[[nodiscard]] std::string read_gzip_file(const std::filesystem::path& path);

}  // namespace halfscope
