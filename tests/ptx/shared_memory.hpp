// Shared memory of a block, which finds reads of bytes never written and accesses that no barrier orders.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/byte_space.hpp"

namespace halfscope::ptx {

/// A race is an access of a byte by one thread and a write of it by another with no barrier between; two
/// writes of one value are none, nor are two atomic operations. Addresses start at 0. All accesses throw
/// Violation when they are out of bounds, misaligned or in a race; reads also where a byte was never written.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t size) : bytes_(size), writes_(size), reads_(size) {}

  /// Another block: nothing is written, nobody has read.
  void reset();
  /// A barrier of the block: what follows is ordered after what was.
  void barrier();

  /// Accesses of a thread, of few bytes whose number is known.
  template <std::size_t count>
  void load(std::uint32_t thread, std::uint64_t address, std::span<std::byte, count> to) {
    check(address, count);
    if (!note_reads<count>(stamp_of(thread), address)) check_reads(thread, address, count);
    std::memcpy(to.data(), bytes_.data() + address, count);
  }
  template <std::size_t count>
  void store(std::uint32_t thread, std::uint64_t address, std::span<const std::byte, count> from) {
    check(address, count);
    if (!note_writes<count>(stamp_of(thread), address)) check_writes(thread, address, from);
    std::memcpy(bytes_.data() + address, from.data(), count);
  }
  /// The read of a warp-wide operation: it is ordered after no write of the warp's own threads either.
  void load_for_warp(std::uint64_t address, std::span<std::byte> to);
  /// The bytes for an atomic operation, which reads and writes them.
  [[nodiscard]] std::span<std::byte> atomic(std::uint32_t thread, std::uint64_t address, std::size_t bytes);

  /// An asynchronous copy was issued: until it ends, nobody may touch these bytes.
  void begin_copy(std::uint32_t thread, std::uint64_t address, std::size_t bytes);
  void end_copy(std::uint32_t thread, std::uint64_t address, std::span<const std::byte> from);

 private:
  /// Who touched a byte last, and in which interval between barriers: zero is nobody. Stamps grow, so that
  /// those of this interval are the ones from `first_stamp_` on.
  using Stamp = std::int32_t;
  // Threads are numbered below 1024.
  static constexpr int thread_bits = 11;
  static constexpr Stamp several = 2047;    ///< threads, none of whom is meant by `who`
  static constexpr Stamp by_atomic = 2046;  ///< changed by atomic operations
  static constexpr Stamp one_interval = 1 << thread_bits;
  static constexpr Stamp copying = 0x7FFF'FFFF;  ///< until its asynchronous copy ends, in every interval
  static constexpr Stamp last_interval = copying - 2 * one_interval;

  [[nodiscard]] Stamp stamp_of(std::uint32_t who) const { return first_stamp_ | static_cast<Stamp>(who); }
  [[nodiscard]] bool is_now(Stamp stamp) const { return stamp >= first_stamp_; }
  static constexpr std::uint32_t who(Stamp stamp) {
    return static_cast<std::uint32_t>(stamp & (one_interval - 1));
  }
  /// Stamp of a byte that was touched before, in this interval by another.
  [[nodiscard]] Stamp joined(Stamp before, Stamp now) const {
    return is_now(before) && before != now ? stamp_of(several) : now;
  }

  void check(std::uint64_t address, std::size_t bytes) const {
    check_alignment(address, bytes);
    check_bounds(address, bytes, bytes_.size(), "shared memory");
  }

  /// Stamps of neighbours, as many as an access has: 4, or 1.
  template <std::size_t count>
  using Group[[gnu::vector_size(count % 4 == 0 ? 4 * sizeof(Stamp) : sizeof(Stamp))]] = Stamp;
  template <typename Stamps>
  static Stamps load_group(const Stamp* from) {
    Stamps group;
    std::memcpy(&group, from, sizeof(group));
    return group;
  }
  template <typename Stamps>
  static bool all(const Stamps& marks) {
    if constexpr (sizeof(Stamps) == sizeof(Stamp)) {
      return marks[0] != 0;
    } else {
      std::array<std::uint64_t, 2> halves;
      std::memcpy(&halves, &marks, sizeof(marks));
      return (halves[0] & halves[1]) == ~std::uint64_t{0};
    }
  }
  /// Not touched in this interval by another.
  template <typename Stamps>
  [[nodiscard]] Stamps is_own(const Stamps& stamps, Stamp now) const {
    return (stamps < first_stamp_) | (stamps == now);
  }

  /// Where nothing is wrong: notes the reader and returns true.
  template <std::size_t count>
  bool note_reads(Stamp now, std::uint64_t address) {
    using Stamps = Group<count>;
    constexpr std::size_t step = sizeof(Stamps) / sizeof(Stamp);
    for (std::size_t i = address; i < address + count; i += step) {
      const auto writes = load_group<Stamps>(writes_.data() + i);
      if (!all<Stamps>((writes > 0) & is_own(writes, now))) return false;
    }
    for (std::size_t i = address; i < address + count; i += step) {
      const auto reads = load_group<Stamps>(reads_.data() + i);
      const Stamps own = is_own(reads, now), next = (own & now) | (~own & stamp_of(several));
      std::memcpy(reads_.data() + i, &next, sizeof(next));
    }
    return true;
  }
  template <std::size_t count>
  bool note_writes(Stamp now, std::uint64_t address) {
    using Stamps = Group<count>;
    constexpr std::size_t step = sizeof(Stamps) / sizeof(Stamp);
    for (std::size_t i = address; i < address + count; i += step) {
      const auto writes = load_group<Stamps>(writes_.data() + i),
                 reads = load_group<Stamps>(reads_.data() + i);
      if (!all<Stamps>(is_own(writes, now) & is_own(reads, now))) return false;
    }
    for (std::size_t i = address; i < address + count; ++i) writes_[i] = now;
    return true;
  }

  [[nodiscard]] static std::string last_change(Stamp write);
  // The same byte by byte, with the fault's name.
  void check_reads(std::uint32_t thread, std::uint64_t address, std::size_t bytes);
  void check_read(std::uint32_t thread, std::uint64_t address);
  void check_writes(std::uint32_t thread, std::uint64_t address, std::span<const std::byte> from);
  void check_write(std::uint32_t thread, std::uint64_t address, std::byte value);
  void check_readers(std::uint32_t thread, std::uint64_t address, std::string_view done) const;

  std::vector<std::byte> bytes_;
  std::vector<Stamp> writes_, reads_;  ///< stamps of each byte
  Stamp first_stamp_ = one_interval;
};

}  // namespace halfscope::ptx
