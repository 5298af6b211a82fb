// Files read and written whole: a reader never sees half a file, whatever stops the writer.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace halfscope {

/// The bytes of the file or pipe at `path`. Throws InvalidArgument if it is missing, a folder, a device or
/// not readable, a pipe that nobody writes to for 5 s or one that does not end within 1 GiB; RuntimeFailure
/// if reading fails half-way.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// Takes a line without its end, and its number from 1.
using LineSink = std::function<void(std::size_t line, std::string_view text)>;
inline constexpr std::size_t longest_line = std::size_t{1} << 26;

/// Hands over the lines of the file or pipe, of any size, one after the other. Throws as `read_file` does,
/// and InvalidArgument for a line that is longer than `longest_line`.
void read_lines(const std::filesystem::path& path, const LineSink& take);
/// The same, but that a last line without an end goes to `take_cut`.
void read_lines(const std::filesystem::path& path, const LineSink& take, const LineSink& take_cut);

/// The content of a file that gzip has compressed, or that is not compressed. Throws InvalidArgument, naming
/// it, where it cannot be read, is damaged or ends early.
[[nodiscard]] std::string read_gzip_file(const std::filesystem::path& path);

/// Puts `contents` at `path`, all of it or none: they go to a temporary file in the same folder, reach the
/// disk, and only then take the name; on failure the old file stays as it was. Symbolic links are followed.
/// Throws RuntimeFailure with the path and the system's reason.
void write_file(const std::filesystem::path& path, std::string_view contents);

/// Makes the folder `path` and those above it; one that exists is fine. Throws RuntimeFailure.
void create_folder(const std::filesystem::path& path);

/// Removes what writers that were killed in the middle of `write_file` left in `folder`; for a folder that
/// nobody else writes to.
void remove_unfinished_files(const std::filesystem::path& folder);

/// `path` for a message of one line, see `escaped`; '' where it is empty.
[[nodiscard]] std::string printable(const std::filesystem::path& path);

}  // namespace halfscope
