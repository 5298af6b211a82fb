// Bytes of which each knows whether it was written: an allocation, a thread's local memory, parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope::ptx {

/// Throws Violation unless `address` is a multiple of `bytes`, a power of two.
void check_alignment(std::uint64_t address, std::size_t bytes);
/// Throws Violation unless [offset, offset + bytes) lies in [0, size) of `name`.
void check_bounds(std::uint64_t offset, std::size_t bytes, std::size_t size, std::string_view name);

/// Value of a byte never written: floats of such bytes are NaN.
inline constexpr std::byte unwritten{0xFF};

class ByteSpace {
 public:
  ByteSpace() = default;
  /// `size` bytes, none of them written; `name` is for errors.
  ByteSpace(std::string name, std::size_t size)
      : name_(std::move(name)), bytes_(size, unwritten), written_(size) {}

  /// Throws Violation outside the bounds and where a byte was never written.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  /// The same, but bytes never written are `unwritten`.
  void read_all(std::uint64_t offset, std::span<std::byte> to) const;
  /// Throws Violation outside the bounds.
  void write(std::uint64_t offset, std::span<const std::byte> from);
  /// Copies bytes and whether they were written.
  void copy(std::uint64_t offset, const ByteSpace& from, std::uint64_t from_offset, std::size_t bytes);
  void fill(std::uint64_t offset, std::byte value, std::size_t bytes);
  /// Forgets what was written.
  void reset();

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  std::string name_;
  std::vector<std::byte> bytes_;
  std::vector<std::uint8_t> written_;
};

}  // namespace halfscope::ptx
