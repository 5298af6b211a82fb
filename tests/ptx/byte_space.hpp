// Bytes of which each knows whether it was written: an allocation, a thread's local memory, parameters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halfscope::ptx {

[[noreturn]] void fail_alignment(std::uint64_t address, std::size_t bytes);
/// Throws Violation unless `address` is a multiple of `bytes`, a power of two.
inline void check_alignment(std::uint64_t address, std::size_t bytes) {
  if ((address & (bytes - 1)) != 0) fail_alignment(address, bytes);
}
[[noreturn]] void fail_bounds(std::uint64_t offset, std::size_t bytes, std::size_t size,
                              std::string_view name);
/// Throws Violation unless [offset, offset + bytes) lies in [0, size) of `name`.
inline void check_bounds(std::uint64_t offset, std::size_t bytes, std::size_t size, std::string_view name) {
  if (offset > size || bytes > size - offset) fail_bounds(offset, bytes, size, name);
}

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
  // The same two for the accesses of a thread, of few bytes whose number is known.
  template <std::size_t count>
  void read_some(std::uint64_t offset, std::span<std::byte, count> to) const;
  template <std::size_t count>
  void write_some(std::uint64_t offset, std::span<const std::byte, count> from);

  /// Copies bytes and whether they were written.
  void copy(std::uint64_t offset, const ByteSpace& from, std::uint64_t from_offset, std::size_t bytes);
  void fill(std::uint64_t offset, std::byte value, std::size_t bytes);
  /// Forgets what was written.
  void reset();

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  [[nodiscard]] bool contains(std::uint64_t offset, std::size_t bytes) const {
    return offset <= bytes_.size() && bytes <= bytes_.size() - offset;
  }
  template <std::size_t count>
  static constexpr std::array<std::uint8_t, count> ones = [] {
    std::array<std::uint8_t, count> all{};
    all.fill(1);
    return all;
  }();

  std::string name_;
  std::vector<std::byte> bytes_;
  std::vector<std::uint8_t> written_;
};

template <std::size_t count>
void ByteSpace::read_some(std::uint64_t offset, std::span<std::byte, count> to) const {
  const bool right =
      contains(offset, count) && std::memcmp(written_.data() + offset, ones<count>.data(), count) == 0;
  if (!right) return read(offset, to);  // which names the fault
  std::memcpy(to.data(), bytes_.data() + offset, count);
}

template <std::size_t count>
void ByteSpace::write_some(std::uint64_t offset, std::span<const std::byte, count> from) {
  if (!contains(offset, count)) return write(offset, from);
  std::memcpy(bytes_.data() + offset, from.data(), count);
  std::memset(written_.data() + offset, 1, count);
}

}  // namespace halfscope::ptx
