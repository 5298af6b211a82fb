// A block of threads: runs each warp to its next synchronisation, then checks that all threads have arrived.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/ptx/schedule.hpp"
#include "tests/ptx/warp.hpp"

namespace halfscope::ptx {

class Block {
 public:
  Block(Program& program, Environment& environment, std::uint32_t threads);

  /// Runs the entry as block `block` of `blocks`. Throws Fault.
  void run(std::uint32_t block, std::uint32_t blocks, Scheduler& scheduler);

 private:
  /// A thread, for messages.
  struct Place {
    std::uint32_t thread = 0;
    std::uint32_t instruction = 0;
  };

  template <typename Work>
  void locate(const Warp& warp, const Work& work) const;
  void run_warp(Warp& warp);
  [[nodiscard]] bool is_finished() const;
  [[nodiscard]] bool run_together();
  [[nodiscard]] bool is_at_warp_operation(const Warp& warp, std::size_t lane) const;
  void check_warp(const Warp& warp, const Place& first) const;
  void pass_barrier();
  [[nodiscard]] Place first_waiting() const;
  void check_arrival(const Warp& warp, const Place& first, std::string_view what) const;
  [[noreturn]] void fail(const Place& place, std::string_view what) const;

  Program& program_;
  Environment& environment_;
  std::uint32_t threads_;
  std::vector<Warp> warps_;
  std::vector<std::uint32_t> order_;
  LaneSchedule lanes_;
  std::uint32_t block_ = 0;
};

}  // namespace halfscope::ptx
