// Shared memory of a block, which finds reads of bytes never written and accesses that no barrier orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace halfscope::ptx {

/// A race is an access of a byte by one thread and a write of it by another with no barrier between; two
/// writes of one value are none, nor are two atomic operations. Addresses start at 0. All accesses throw
/// Violation when they are out of bounds, misaligned or in a race; reads also where a byte was never written.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t size) : bytes_(size), shadows_(size) {}

  /// Another block: nothing is written, nobody has read.
  void reset();
  /// A barrier of the block: what follows is ordered after what was.
  void barrier() { ++interval_; }

  void load(std::uint32_t thread, std::uint64_t address, std::span<std::byte> to);
  void store(std::uint32_t thread, std::uint64_t address, std::span<const std::byte> from);
  /// The read of a warp-wide operation: it is ordered after no write of the warp's own threads either.
  void load_for_warp(std::uint64_t address, std::span<std::byte> to);
  /// The bytes for an atomic operation, which reads and writes them.
  [[nodiscard]] std::span<std::byte> atomic(std::uint32_t thread, std::uint64_t address, std::size_t bytes);

  /// An asynchronous copy was issued: until it ends, nobody may touch these bytes.
  void begin_copy(std::uint32_t thread, std::uint64_t address, std::size_t bytes);
  void end_copy(std::uint32_t thread, std::uint64_t address, std::span<const std::byte> from);

 private:
  /// Who touched a byte in an interval between barriers.
  struct Shadow {
    std::uint32_t write_interval = 0;
    std::uint32_t read_interval = 0;
    std::uint32_t atomic_interval = 0;
    std::uint16_t writer = 0;
    std::uint16_t reader = 0;
    bool written = false;
    bool copying = false;
  };

  void check(std::uint64_t address, std::size_t bytes) const;
  void check_read(std::uint16_t thread, std::uint64_t address);
  void check_write(std::uint16_t thread, std::uint64_t address, bool same_value);
  void check_readers(std::uint16_t thread, std::uint64_t address) const;
  void check_atomics(std::uint64_t address, std::string_view done) const;
  void read(std::uint16_t reader, std::uint64_t address, std::span<std::byte> to);
  void write(std::uint16_t writer, std::uint64_t address, std::span<const std::byte> from);

  std::vector<std::byte> bytes_;
  std::vector<Shadow> shadows_;
  std::uint32_t interval_ = 1;
};

}  // namespace halfscope::ptx
