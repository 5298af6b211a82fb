// Checksum of a member that is not packed, and whose parts are read in any order by several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string_view>

namespace halfscope {

/// CRC-32 of consecutive bytes of a member.
class RangeChecksum {
 public:
  /// Checksum of the bytes from `begin` on.
  explicit RangeChecksum(std::uint64_t begin) : begin_(begin) {}
  void add(std::span<const std::byte> bytes);

  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::uint32_t crc() const { return crc_; }

 private:
  std::uint64_t begin_;
  std::uint64_t size_ = 0;
  std::uint32_t crc_ = 0;
};

/// Puts the checksums of a member's parts together.
class StoredChecksum {
 public:
  /// `size` bytes whose checksum is declared as `expected`.
  StoredChecksum(std::uint64_t size, std::uint32_t expected) : size_(size), expected_(expected) {}

  /// The one that completes the member throws InvalidArgument with `where` if the checksum differs. Parts
  /// that overlap others, as a second reading has them, leave the member unjudged or judged as it was.
  void add(const RangeChecksum& range, std::string_view where);

 private:
  struct Part {
    std::uint64_t size = 0;
    std::uint32_t crc = 0;
  };

  std::mutex mutex_;
  std::uint64_t size_;
  std::uint32_t expected_;
  std::map<std::uint64_t, Part> parts_;  ///< by their first byte, neighbours joined
};

}  // namespace halfscope
