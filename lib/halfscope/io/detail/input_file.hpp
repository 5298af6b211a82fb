// A regular file that is read in pieces, at any place and from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include <halfscope/io/detail/descriptor.hpp>

namespace halfscope {

/// Fills the span with the bytes that come next; throws where they end early.
using ByteSource = std::function<void(std::span<std::byte>)>;

class InputFile {
 public:
  /// Throws InvalidArgument if `path` is missing, not readable or anything but a regular file.
  explicit InputFile(const std::filesystem::path& path);

  /// The path for messages, see `printable`.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Bytes in the file when it was opened.
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Fills `to` with the bytes from `offset` on. Reads rather than maps: a file that shrinks meanwhile is a
  /// InvalidArgument, where a mapping would end the process, and no page of it counts as this process's
  /// memory.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  /// Reads bytes from `offset` on into the beginning of `to`. Returns how many, 0 where the file ends now.
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  std::string name_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0;
};

/// The bytes of `file` from `offset` on, one call after the other.
[[nodiscard]] inline ByteSource bytes_from(const InputFile& file, std::uint64_t offset) {
  return [&file, offset](std::span<std::byte> to) mutable {
    file.read(offset, to);
    offset += to.size();
  };
}

}  // namespace halfscope
