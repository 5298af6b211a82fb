// One thread of a block: its registers, its place in the code, and the memory that it reaches.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <halfscope/kernel/gemm/gemm_ordered.hpp>

#include "tests/ptx/async_copies.hpp"
#include "tests/ptx/module.hpp"

namespace halfscope::ptx {

/// State that the threads of a block share.
struct Environment {
  GlobalMemory& global;
  SharedMemory& shared;
  const ByteSpace& parameters;
  ComputeCapability capability;
};

enum class ThreadState : std::uint8_t {
  running,
  waiting,  ///< at a barrier or at a warp-wide operation
  finished
};

class Thread {
 public:
  Thread(const Entry& entry, Environment& environment, std::uint32_t number);

  /// Begins the entry anew in block `block` of `blocks`; `threads` are in each. No register is written.
  void start(std::uint32_t block, std::uint32_t blocks, std::uint32_t threads);

  /// Throws Violation where the register was never written.
  template <typename T>
  [[nodiscard]] T get(const Operand& operand) const;
  template <typename T>
  void set(const Operand& operand, T value);

  [[nodiscard]] bool is_written(const Operand& operand) const { return written_[operand.reg] != 0; }
  /// The register holds nothing from here on: a copy of one that holds nothing.
  void forget(const Operand& operand) { written_[operand.reg] = 0; }

  template <Space space>
  void load(std::uint64_t address, std::span<std::byte> to);
  template <Space space>
  void store(std::uint64_t address, std::span<const std::byte> from);

  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] Environment& environment() const { return *environment_; }
  [[nodiscard]] AsyncCopies& copies() { return copies_; }

  std::uint32_t next = 0;  ///< the instruction that it is at
  ThreadState state = ThreadState::running;

 private:
  [[nodiscard]] std::uint64_t bits(const Operand& operand) const;
  [[noreturn]] void fail_unwritten(std::uint32_t reg) const;

  const Entry* entry_;
  Environment* environment_;
  std::uint32_t number_;
  std::vector<std::uint64_t> cells_;
  std::vector<std::uint8_t> written_;
  ByteSpace local_;
  AsyncCopies copies_;
};

inline std::uint64_t Thread::bits(const Operand& operand) const {
  if (written_[operand.reg] == 0) fail_unwritten(operand.reg);
  return cells_[operand.reg] + operand.value;
}

template <typename T>
T Thread::get(const Operand& operand) const {
  const std::uint64_t cell = bits(operand);
  if constexpr (std::is_same_v<T, bool>) {
    return (cell & 1) != 0;
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(cell));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(cell);
  } else {
    return static_cast<T>(cell);
  }
}

template <typename T>
void Thread::set(const Operand& operand, T value) {
  std::uint64_t cell = 0;
  if constexpr (std::is_same_v<T, float>) {
    cell = std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    cell = std::bit_cast<std::uint64_t>(value);
  } else {
    cell = static_cast<std::uint64_t>(value);  // signed values extend: the register may be wider
  }
  cells_[operand.reg] = cell;
  written_[operand.reg] = 1;
}

template <Space space>
void Thread::load(std::uint64_t address, std::span<std::byte> to) {
  if constexpr (space == Space::global) {
    environment_->global.load(address, to);
  } else if constexpr (space == Space::shared) {
    environment_->shared.load(number_, address, to);
  } else {
    check_alignment(address, to.size());
    (space == Space::local ? local_ : environment_->parameters).read(address, to);
  }
}

template <Space space>
void Thread::store(std::uint64_t address, std::span<const std::byte> from) {
  static_assert(space != Space::param, "parameters are read only");
  if constexpr (space == Space::global) {
    environment_->global.store(address, from);
  } else if constexpr (space == Space::shared) {
    environment_->shared.store(number_, address, from);
  } else {
    check_alignment(address, from.size());
    local_.write(address, from);
  }
}

}  // namespace halfscope::ptx
