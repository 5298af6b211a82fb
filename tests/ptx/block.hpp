// A block of threads: runs each of them to its next synchronisation, then checks that all have arrived.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/ptx/schedule.hpp"
#include "tests/ptx/thread.hpp"

namespace halfscope::ptx {

class Block {
 public:
  /// Counts executed instructions by opcode in `counts`.
  Block(const Entry& entry, Environment& environment, std::uint32_t threads,
        std::vector<std::uint64_t>& counts);

  /// Runs the entry as block `block` of `blocks`. Throws Fault.
  void run(std::uint32_t block, std::uint32_t blocks, Scheduler& scheduler);

 private:
  void run_thread(Thread& thread);
  void run_to_stop(Thread& thread);
  void finish_thread(Thread& thread);
  [[nodiscard]] bool run_warps();
  [[nodiscard]] bool run_warp(std::span<Thread> warp);
  void execute_warp(std::span<Thread> warp);
  void pass_barrier();
  void check_together(std::span<const Thread> threads, const Thread& first, std::string_view what) const;
  [[nodiscard]] bool is_at(const Thread& thread, Kind kind) const;
  [[noreturn]] void fail(const Thread& thread, std::string_view what) const;

  const Entry& entry_;
  Environment& environment_;
  std::vector<std::uint64_t>& counts_;
  std::vector<const Action*> actions_;  ///< of each instruction
  std::vector<Thread> threads_;
  std::vector<std::uint32_t> order_;
  std::uint32_t block_ = 0;
};

}  // namespace halfscope::ptx
