// A block of threads: warps run alone between two synchronisations, in the order of the schedule.
#include "tests/ptx/block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {

Block::Block(Program& program, Environment& environment, std::uint32_t threads)
    : program_(program), environment_(environment), threads_(threads) {
  constexpr auto whole = static_cast<std::uint32_t>(warp_threads);
  for (std::uint32_t first = 0; first < threads; first += whole) {
    warps_.emplace_back(program, environment, first, std::min(whole, threads - first));
  }
  order_.resize(warps_.size());
}

void Block::run(std::uint32_t block, std::uint32_t blocks, Scheduler& scheduler) {
  block_ = block;
  environment_.shared.reset();
  for (Warp& warp : warps_) warp.start(block, blocks, threads_);
  for (;;) {
    scheduler.arrange(order_);
    scheduler.arrange(lanes_);
    for (const std::uint32_t number : order_) run_warp(warps_[number]);
    if (is_finished()) return;
    if (!run_together()) pass_barrier();
  }
}

/// A Violation that `work` throws becomes a Fault at the thread and the instruction that were at work.
template <typename Work>
void Block::locate(const Warp& warp, const Work& work) const {
  try {
    work();
  } catch (const Violation& violation) {
    fail({warp.thread_of(warp.lane_at_work()), warp.place_at_work()}, violation.what());
  }
}

void Block::run_warp(Warp& warp) {
  locate(warp, [&] {
    for (const Lanes group : lanes_.groups) warp.run(group, lanes_.order);
  });
}

bool Block::is_finished() const {
  return std::all_of(warps_.begin(), warps_.end(),
                     [](const Warp& warp) { return warp.finished() == warp.lanes(); });
}

/// Whether a warp was at an operation of its own; all such have been executed then.
bool Block::run_together() {
  bool any = false;
  for (Warp& warp : warps_) {
    if (warp.waiting() == 0) continue;
    std::size_t lane = 0;
    while (lane < warp_threads && !is_at_warp_operation(warp, lane)) ++lane;
    if (lane == warp_threads) continue;
    check_warp(warp, {warp.thread_of(lane), warp.place_of(lane)});
    locate(warp, [&] { warp.run_together(); });
    any = true;
  }
  return any;
}

bool Block::is_at_warp_operation(const Warp& warp, std::size_t lane) const {
  return (warp.waiting() >> lane & 1) != 0 && program_.steps[warp.place_of(lane)].kind == Kind::warp;
}

/// `first` is at the warp's operation.
void Block::check_warp(const Warp& warp, const Place& first) const {
  if (warp.lanes() != all_lanes) {
    fail(first, fmt::format("the warp has {} threads, the operation needs {}", std::popcount(warp.lanes()),
                            warp_threads));
  }
  check_arrival(warp, first, "warp");
}

void Block::pass_barrier() {
  const Place first = first_waiting();
  for (const Warp& warp : warps_) check_arrival(warp, first, "block");
  environment_.shared.barrier();
  program_.counts[program_.steps[first.instruction].opcode] += threads_;
  for (Warp& warp : warps_) warp.pass();
}

Block::Place Block::first_waiting() const {
  const Warp& warp =
      *std::find_if(warps_.begin(), warps_.end(), [](const Warp& w) { return w.waiting() != 0; });
  const auto lane = static_cast<std::size_t>(std::countr_zero(warp.waiting()));
  return {warp.thread_of(lane), warp.place_of(lane)};
}

/// All must wait at one instruction. A thread that has ended does not: whether it still counts is a question
/// of the architecture.
void Block::check_arrival(const Warp& warp, const Place& first, std::string_view what) const {
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    if ((warp.lanes() >> lane & 1) == 0) continue;
    const std::uint32_t thread = warp.thread_of(lane);
    if ((warp.finished() >> lane & 1) != 0) {
      fail(first, fmt::format("not all threads of the {} arrive: thread {} has ended", what, thread));
    }
    if (warp.place_of(lane) != first.instruction) {
      const Instruction& other = program_.entry.code[warp.place_of(lane)];
      fail(first, fmt::format("not all threads of the {} arrive: thread {} is at line {}, '{}'", what, thread,
                              other.line, other.text));
    }
  }
}

void Block::fail(const Place& place, std::string_view what) const {
  const Instruction& instruction = program_.entry.code[place.instruction];
  throw Fault(fmt::format("{}, block {}, thread {}, line {}, '{}': {}", program_.entry.name, block_,
                          place.thread, instruction.line, instruction.text, what));
}

}  // namespace halfscope::ptx
