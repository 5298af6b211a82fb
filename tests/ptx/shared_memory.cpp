// Shared memory of a block, with a shadow of each byte: who wrote and who read it since the last barrier.
#include "tests/ptx/shared_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/ptx/byte_space.hpp"
#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

// Threads are numbered below 1024.
constexpr std::uint16_t several = 0xFFFF;

std::string name_of_thread(std::uint16_t thread) {
  if (thread == several) return "several threads";
  return fmt::format("thread {}", thread);
}

[[noreturn]] void fail_race(std::uint64_t address, std::string_view done, std::string_view before,
                            std::uint16_t other) {
  throw Violation(fmt::format("race: byte {} of shared memory is {}, {} by {} with no barrier between",
                              address, done, before, name_of_thread(other)));
}

constexpr std::uint16_t short_number(std::uint32_t thread) {
  return static_cast<std::uint16_t>(thread);
}

}  // namespace

void SharedMemory::reset() {
  std::fill(shadows_.begin(), shadows_.end(), Shadow{});
  interval_ = 1;
}

void SharedMemory::check(std::uint64_t address, std::size_t bytes) const {
  check_alignment(address, bytes);
  check_bounds(address, bytes, bytes_.size(), "shared memory");
}

/// Notes the reader.
void SharedMemory::check_read(std::uint16_t thread, std::uint64_t address) {
  Shadow& shadow = shadows_[address];
  if (shadow.copying) {
    throw Violation(
        fmt::format("byte {} of shared memory is read while cp.async may still write it", address));
  }
  if (!shadow.written)
    throw Violation(fmt::format("byte {} of shared memory is read uninitialised", address));
  check_atomics(address, "read");
  const bool other = shadow.writer != thread || thread == several;
  if (shadow.write_interval == interval_ && other) fail_race(address, "read", "written", shadow.writer);
  const bool again = shadow.read_interval == interval_ && shadow.reader != thread;
  shadow.reader = again ? several : thread;
  shadow.read_interval = interval_;
}

void SharedMemory::check_readers(std::uint16_t thread, std::uint64_t address) const {
  const Shadow& shadow = shadows_[address];
  if (shadow.copying) {
    throw Violation(
        fmt::format("byte {} of shared memory is written while cp.async may still write it", address));
  }
  if (shadow.read_interval == interval_ && shadow.reader != thread)
    fail_race(address, "written", "read", shadow.reader);
}

void SharedMemory::check_atomics(std::uint64_t address, std::string_view done) const {
  if (shadows_[address].atomic_interval != interval_) return;
  throw Violation(
      fmt::format("race: byte {} of shared memory is {}, changed by an atomic operation with no barrier "
                  "between",
                  address, done));
}

/// Notes the writer.
void SharedMemory::check_write(std::uint16_t thread, std::uint64_t address, bool same_value) {
  check_readers(thread, address);
  check_atomics(address, "written");
  Shadow& shadow = shadows_[address];
  const bool again = shadow.write_interval == interval_ && shadow.writer != thread;
  if (again && !same_value) fail_race(address, "written", "written", shadow.writer);
  shadow.writer = again ? several : thread;
  shadow.write_interval = interval_;
  shadow.written = true;
}

void SharedMemory::read(std::uint16_t reader, std::uint64_t address, std::span<std::byte> to) {
  check(address, to.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    check_read(reader, address + i);
    to[i] = bytes_[address + i];
  }
}

void SharedMemory::write(std::uint16_t writer, std::uint64_t address, std::span<const std::byte> from) {
  check(address, from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    check_write(writer, address + i, bytes_[address + i] == from[i]);
    bytes_[address + i] = from[i];
  }
}

void SharedMemory::load(std::uint32_t thread, std::uint64_t address, std::span<std::byte> to) {
  read(short_number(thread), address, to);
}

void SharedMemory::store(std::uint32_t thread, std::uint64_t address, std::span<const std::byte> from) {
  write(short_number(thread), address, from);
}

void SharedMemory::load_for_warp(std::uint64_t address, std::span<std::byte> to) {
  read(several, address, to);
}

std::span<std::byte> SharedMemory::atomic(std::uint32_t thread, std::uint64_t address, std::size_t bytes) {
  check(address, bytes);
  for (std::uint64_t i = address; i < address + bytes; ++i) {
    Shadow& shadow = shadows_[i];
    check_readers(short_number(thread), i);
    if (!shadow.written) throw Violation(fmt::format("byte {} of shared memory is read uninitialised", i));
    if (shadow.write_interval == interval_ && shadow.writer != thread)
      fail_race(i, "changed by an atomic operation", "written", shadow.writer);
    shadow.atomic_interval = interval_;
  }
  return std::span(bytes_).subspan(address, bytes);
}

void SharedMemory::begin_copy(std::uint32_t thread, std::uint64_t address, std::size_t bytes) {
  check(address, bytes);
  for (std::uint64_t i = address; i < address + bytes; ++i) {
    check_write(short_number(thread), i, false);
    shadows_[i].copying = true;
  }
}

void SharedMemory::end_copy(std::uint32_t thread, std::uint64_t address, std::span<const std::byte> from) {
  for (std::uint64_t i = address; i < address + from.size(); ++i) shadows_[i].copying = false;
  write(short_number(thread), address, from);
}

}  // namespace halfscope::ptx
