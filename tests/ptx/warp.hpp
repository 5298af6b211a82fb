// A warp: the registers of its 32 threads, their places in the code, and the memory that they reach.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <halfscope/kernel/gemm/gemm_ordered.hpp>

#include "tests/ptx/async_copies.hpp"
#include "tests/ptx/fragments.hpp"
#include "tests/ptx/module.hpp"
#include "tests/ptx/schedule.hpp"

namespace halfscope::ptx {

/// State that the threads of a block share.
struct Environment {
  GlobalMemory& global;
  SharedMemory& shared;
  const ByteSpace& parameters;
  ComputeCapability capability;
};

/// Registers of a type T, as 64-bit cells.
template <typename T>
[[nodiscard]] constexpr T from_cell(std::uint64_t cell) {
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
[[nodiscard]] constexpr std::uint64_t to_cell(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(value);  // signed values extend: the register may be wider
  }
}

/// An instruction as it is executed.
struct Step {
  Execute execute = nullptr;
  const Operand* operands = nullptr;
  Operand guard;
  Kind kind = Kind::thread;
  std::uint32_t opcode = 0;
  std::uint32_t target = 0;
};

/// The entry of a launch, with the executions of each opcode.
struct Program {
  Program(const Entry& e, std::vector<std::uint64_t>& executed);

  const Entry& entry;
  std::vector<Step> steps;
  std::vector<std::uint64_t>& counts;
};

/// Threads at one instruction execute it together, those furthest back first.
class Warp {
 public:
  using Cells = std::array<std::uint64_t, warp_threads>;

  Warp(Program& program, Environment& environment, std::uint32_t first_thread, std::uint32_t threads);

  /// Begins the entry anew in block `block` of `blocks`; `threads` are in each. No register is written.
  void start(std::uint32_t block, std::uint32_t blocks, std::uint32_t threads);
  /// Runs the threads of `group` that are not waiting until each waits or has ended; their accesses to memory
  /// come in the order `order`.
  void run(Lanes group, const LaneOrder& order);
  /// Executes the operation of the whole warp that all threads are waiting at.
  void run_together();
  /// Waiting threads go on behind the instruction.
  void pass();

  [[nodiscard]] Lanes lanes() const { return lanes_; }
  [[nodiscard]] Lanes waiting() const { return waiting_; }
  [[nodiscard]] Lanes finished() const { return finished_; }
  [[nodiscard]] std::uint32_t thread_of(std::size_t lane) const {
    return first_thread_ + static_cast<std::uint32_t>(lane);
  }
  [[nodiscard]] std::uint32_t place_of(std::size_t lane) const { return next_[lane]; }

  // For actions. All throw Violation where a register is read that was never written.

  [[nodiscard]] Environment& environment() const { return environment_; }
  [[nodiscard]] AsyncCopies& copies(std::size_t lane) { return copies_[lane]; }
  [[nodiscard]] ByteSpace& local(std::size_t lane) { return local_[lane]; }

  /// Cells of each lane, without an operand's number.
  [[nodiscard]] Cells& cells(const Operand& operand) { return cells_[operand.reg]; }
  [[nodiscard]] Lanes written(const Operand& operand) const { return written_[operand.reg]; }
  void mark_written(const Operand& operand, Lanes lanes) { written_[operand.reg] |= lanes; }
  void mark_unwritten(const Operand& operand, Lanes lanes) { written_[operand.reg] &= ~lanes; }
  void require_written(const Operand& operand, Lanes lanes) {
    if ((lanes & ~written_[operand.reg]) != 0) fail_unwritten(operand, lanes);
  }
  /// Lanes among `lanes` for which the predicate is true.
  [[nodiscard]] Lanes where(const Operand& predicate, Lanes lanes);

  template <typename T>
  [[nodiscard]] T get(const Operand& operand, std::size_t lane) {
    require_written(operand, Lanes{1} << lane);
    return from_cell<T>(cells_[operand.reg][lane] + operand.value);
  }
  template <typename T>
  void set(const Operand& operand, std::size_t lane, T value) {
    cells_[operand.reg][lane] = to_cell(value);
    written_[operand.reg] |= Lanes{1} << lane;
  }

  /// Calls function(lane) for each of `lanes`, in the order of the schedule.
  template <typename Function>
  void for_each(Lanes lanes, const Function& function) {
    for (const std::uint8_t lane : order_) {
      if ((lanes >> lane & 1) == 0) continue;
      lane_ = lane;
      function(std::size_t{lane});
    }
  }

  /// The lane and the instruction that were at work: where a Violation belongs.
  [[nodiscard]] std::size_t lane_at_work() const { return lane_; }
  [[nodiscard]] std::uint32_t place_at_work() const { return place_; }

 private:
  struct Convoy {
    Lanes lanes = 0;
    std::uint32_t place = 0;
    std::uint32_t limit = 0;  ///< where others wait to be joined
  };
  [[nodiscard]] Convoy furthest_back(Lanes lanes) const;
  void run_convoy(Convoy convoy);
  [[nodiscard]] bool branch(Convoy& convoy, const Step& step, Lanes taken);
  void put(Lanes lanes, std::uint32_t place);
  void wait(const Convoy& convoy, Lanes guarded);
  void finish(Lanes lanes);
  [[noreturn]] void fail_unwritten(const Operand& operand, Lanes lanes);

  Program& program_;
  Environment& environment_;
  std::uint32_t first_thread_;
  Lanes lanes_;
  Lanes running_ = 0, waiting_ = 0, finished_ = 0;
  std::array<std::uint32_t, warp_threads> next_{};
  std::vector<Cells> cells_;
  std::vector<Lanes> written_;
  std::vector<ByteSpace> local_;
  std::vector<AsyncCopies> copies_;
  LaneOrder order_{};
  std::size_t lane_ = 0;
  std::uint32_t place_ = 0;
};

}  // namespace halfscope::ptx
