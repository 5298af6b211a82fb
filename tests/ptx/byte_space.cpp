// Bytes of which each knows whether it was written; every access is checked.
#include "tests/ptx/byte_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {

void fail_alignment(std::uint64_t address, std::size_t bytes) {
  throw Violation(fmt::format("address {:#x} of an access of {} bytes is misaligned", address, bytes));
}

void fail_bounds(std::uint64_t offset, std::size_t bytes, std::size_t size, std::string_view name) {
  throw Violation(fmt::format("access of {} bytes at offset {} is out of bounds: {} has {} bytes", bytes,
                              static_cast<std::int64_t>(offset), name, size));
}

void ByteSpace::read(std::uint64_t offset, std::span<std::byte> to) const {
  check_bounds(offset, to.size(), size(), name_);
  if (to.empty()) return;
  const std::uint8_t* written = written_.data() + offset;
  if (const void* hole = std::memchr(written, 0, to.size()); hole != nullptr) {
    const auto place = offset + static_cast<std::size_t>(static_cast<const std::uint8_t*>(hole) - written);
    throw Violation(fmt::format("byte {} of {} is read uninitialised", place, name_));
  }
  std::memcpy(to.data(), bytes_.data() + offset, to.size());
}

void ByteSpace::read_all(std::uint64_t offset, std::span<std::byte> to) const {
  check_bounds(offset, to.size(), size(), name_);
  if (!to.empty()) std::memcpy(to.data(), bytes_.data() + offset, to.size());
}

void ByteSpace::write(std::uint64_t offset, std::span<const std::byte> from) {
  check_bounds(offset, from.size(), size(), name_);
  if (from.empty()) return;
  std::memcpy(bytes_.data() + offset, from.data(), from.size());
  std::memset(written_.data() + offset, 1, from.size());
}

void ByteSpace::copy(std::uint64_t offset, const ByteSpace& from, std::uint64_t from_offset,
                     std::size_t bytes) {
  check_bounds(offset, bytes, size(), name_);
  check_bounds(from_offset, bytes, from.size(), from.name_);
  if (bytes == 0) return;
  std::memmove(bytes_.data() + offset, from.bytes_.data() + from_offset, bytes);
  std::memmove(written_.data() + offset, from.written_.data() + from_offset, bytes);
}

void ByteSpace::fill(std::uint64_t offset, std::byte value, std::size_t bytes) {
  check_bounds(offset, bytes, size(), name_);
  std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), bytes, value);
  std::fill_n(written_.begin() + static_cast<std::ptrdiff_t>(offset), bytes, std::uint8_t{1});
}

void ByteSpace::reset() {
  std::fill(written_.begin(), written_.end(), std::uint8_t{0});
}

}  // namespace halfscope::ptx
