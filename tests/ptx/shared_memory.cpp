// Shared memory of a block, with a shadow of each byte: who wrote and who read it since the last barrier.
#include "tests/ptx/shared_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

[[noreturn]] void fail(std::uint64_t address, std::string_view what) {
  throw Violation(fmt::format("byte {} of shared memory is {}", address, what));
}

[[noreturn]] void fail_race(std::uint64_t address, std::string_view done, std::string_view before) {
  throw Violation(
      fmt::format("race: byte {} of shared memory is {}, {} with no barrier between", address, done, before));
}

}  // namespace

void SharedMemory::reset() {
  std::fill(writes_.begin(), writes_.end(), Stamp{0});
  std::fill(reads_.begin(), reads_.end(), Stamp{0});
  first_stamp_ = one_interval;
}

void SharedMemory::barrier() {
  if (first_stamp_ < last_interval) {
    first_stamp_ += one_interval;
    return;
  }
  // Intervals are used up: all that was belongs to the first.
  for (Stamp& write : writes_) {
    if (write != 0 && write != copying) write = one_interval;
  }
  std::fill(reads_.begin(), reads_.end(), Stamp{0});
  first_stamp_ = 2 * one_interval;
}

/// For messages.
std::string SharedMemory::last_change(Stamp write) {
  if (who(write) == by_atomic) return "changed by an atomic operation";
  if (who(write) == several) return "written by several threads";
  return fmt::format("written by thread {}", who(write));
}

/// Notes the reader.
void SharedMemory::check_read(std::uint32_t thread, std::uint64_t address) {
  const Stamp write = writes_[address];
  if (write == copying) fail(address, "read while cp.async may still write it");
  if (write == 0) fail(address, "read uninitialised");
  const bool own = who(write) == thread && thread != several;
  if (is_now(write) && !own) fail_race(address, "read", last_change(write));
  reads_[address] = joined(reads_[address], stamp_of(thread));
}

void SharedMemory::check_readers(std::uint32_t thread, std::uint64_t address, std::string_view done) const {
  const Stamp read = reads_[address];
  if (writes_[address] == copying) fail(address, fmt::format("{} while cp.async may still write it", done));
  if (!is_now(read) || who(read) == thread) return;
  if (who(read) == several) fail_race(address, done, "read by several threads");
  fail_race(address, done, fmt::format("read by thread {}", who(read)));
}

/// Notes the writer.
void SharedMemory::check_write(std::uint32_t thread, std::uint64_t address, std::byte value) {
  check_readers(thread, address, "written");
  Stamp& write = writes_[address];
  const bool differs = who(write) == by_atomic || bytes_[address] != value;
  if (is_now(write) && who(write) != thread && differs) fail_race(address, "written", last_change(write));
  write = joined(write, stamp_of(thread));
}

void SharedMemory::check_reads(std::uint32_t thread, std::uint64_t address, std::size_t bytes) {
  for (std::uint64_t i = address; i < address + bytes; ++i) check_read(thread, i);
}

void SharedMemory::check_writes(std::uint32_t thread, std::uint64_t address,
                                std::span<const std::byte> from) {
  for (std::size_t i = 0; i < from.size(); ++i) check_write(thread, address + i, from[i]);
}

void SharedMemory::load_for_warp(std::uint64_t address, std::span<std::byte> to) {
  check(address, to.size());
  check_reads(several, address, to.size());
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(address), to.size(), to.begin());
}

std::span<std::byte> SharedMemory::atomic(std::uint32_t thread, std::uint64_t address, std::size_t bytes) {
  constexpr std::string_view done = "changed by an atomic operation";
  check(address, bytes);
  for (std::uint64_t i = address; i < address + bytes; ++i) {
    check_readers(thread, i, done);
    Stamp& write = writes_[i];
    if (write == 0) fail(i, "read uninitialised");
    const bool own = is_now(write) && who(write) == thread;  // others still may not touch it
    if (is_now(write) && !own && who(write) != by_atomic) fail_race(i, done, last_change(write));
    if (!own) write = stamp_of(by_atomic);
  }
  return std::span(bytes_).subspan(address, bytes);
}

void SharedMemory::begin_copy(std::uint32_t thread, std::uint64_t address, std::size_t bytes) {
  check(address, bytes);
  for (std::uint64_t i = address; i < address + bytes; ++i) {
    check_readers(thread, i, "written");
    if (is_now(writes_[i]) && who(writes_[i]) != thread) fail_race(i, "written", last_change(writes_[i]));
    writes_[i] = copying;
  }
}

void SharedMemory::end_copy(std::uint32_t thread, std::uint64_t address, std::span<const std::byte> from) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    writes_[address + i] = stamp_of(thread);
    bytes_[address + i] = from[i];
  }
}

}  // namespace halfscope::ptx
