// A block of threads: each runs alone between two synchronisations, in the order of the schedule.
#include "tests/ptx/block.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/ptx/fault.hpp"
#include "tests/ptx/fragments.hpp"

namespace halfscope::ptx {

Block::Block(const Entry& entry, Environment& environment, std::uint32_t threads,
             std::vector<std::uint64_t>& counts)
    : entry_(entry), environment_(environment), counts_(counts), order_(threads) {
  for (const Instruction& instruction : entry.code)
    actions_.push_back(&all_opcodes()[instruction.opcode]->action);
  threads_.reserve(threads);
  for (std::uint32_t number = 0; number < threads; ++number)
    threads_.emplace_back(entry, environment, number);
}

void Block::run(std::uint32_t block, std::uint32_t blocks, Scheduler& scheduler) {
  block_ = block;
  environment_.shared.reset();
  for (Thread& thread : threads_) thread.start(block, blocks, static_cast<std::uint32_t>(threads_.size()));
  const auto is_finished = [](const Thread& thread) { return thread.state == ThreadState::finished; };
  for (;;) {
    scheduler.arrange(order_);
    for (const std::uint32_t number : order_) run_thread(threads_[number]);
    if (std::all_of(threads_.begin(), threads_.end(), is_finished)) return;
    if (!run_warps()) pass_barrier();
  }
}

void Block::run_thread(Thread& thread) {
  try {
    if (thread.state == ThreadState::running) run_to_stop(thread);
  } catch (const Violation& violation) {
    fail(thread, violation.what());
  }
}

void Block::run_to_stop(Thread& thread) {
  for (;;) {
    const Instruction& instruction = entry_.code[thread.next];
    if (!thread.get<bool>(instruction.guard)) {
      ++thread.next;
      continue;
    }
    const Action& action = *actions_[thread.next];
    if (action.kind == Kind::barrier || action.kind == Kind::warp) {
      thread.state = ThreadState::waiting;
      return;
    }
    ++counts_[instruction.opcode];
    if (action.kind == Kind::exit) return finish_thread(thread);
    if (action.kind == Kind::branch) {
      thread.next = instruction.target;
    } else {
      action.thread(thread, instruction.operands.data());
      ++thread.next;
    }
  }
}

void Block::finish_thread(Thread& thread) {
  thread.copies().finish(thread.number(), environment_.global, environment_.shared);
  thread.state = ThreadState::finished;
}

/// Whether a warp was at a warp-wide operation; all such have been executed then.
bool Block::run_warps() {
  bool any = false;
  for (std::size_t first = 0; first < threads_.size(); first += warp_threads) {
    const std::size_t count = std::min(warp_threads, threads_.size() - first);
    any = run_warp(std::span(threads_).subspan(first, count)) || any;
  }
  return any;
}

bool Block::run_warp(std::span<Thread> warp) {
  const auto first =
      std::find_if(warp.begin(), warp.end(), [&](const Thread& t) { return is_at(t, Kind::warp); });
  if (first == warp.end()) return false;
  if (warp.size() != warp_threads) {
    fail(*first, fmt::format("the warp has {} threads, the operation needs {}", warp.size(), warp_threads));
  }
  check_together(warp, *first, "warp");
  execute_warp(warp);
  return true;
}

void Block::execute_warp(std::span<Thread> warp) {
  const std::uint32_t at = warp.front().next;
  try {
    actions_[at]->warp(warp, entry_.code[at].operands.data());
  } catch (const Violation& violation) {
    fail(warp.front(), violation.what());
  }
  counts_[entry_.code[at].opcode] += warp_threads;
  for (Thread& thread : warp) {
    thread.state = ThreadState::running;
    ++thread.next;
  }
}

void Block::pass_barrier() {
  const auto is_waiting = [](const Thread& thread) { return thread.state == ThreadState::waiting; };
  const Thread& first = *std::find_if(threads_.begin(), threads_.end(), is_waiting);
  check_together(threads_, first, "block");
  environment_.shared.barrier();
  counts_[entry_.code[first.next].opcode] += threads_.size();
  for (Thread& thread : threads_) {
    thread.state = ThreadState::running;
    ++thread.next;
  }
}

/// All must wait at one instruction. A thread that has ended does not: whether it still counts is a question
/// of the architecture.
void Block::check_together(std::span<const Thread> threads, const Thread& first,
                           std::string_view what) const {
  for (const Thread& thread : threads) {
    if (thread.state == ThreadState::finished) {
      fail(first,
           fmt::format("not all threads of the {} arrive: thread {} has ended", what, thread.number()));
    }
    if (thread.next != first.next) {
      const Instruction& other = entry_.code[thread.next];
      fail(first, fmt::format("not all threads of the {} arrive: thread {} is at line {}, '{}'", what,
                              thread.number(), other.line, other.text));
    }
  }
}

bool Block::is_at(const Thread& thread, Kind kind) const {
  return thread.state == ThreadState::waiting && actions_[thread.next]->kind == kind;
}

void Block::fail(const Thread& thread, std::string_view what) const {
  const Instruction& instruction = entry_.code[thread.next];
  throw Fault(fmt::format("{}, block {}, thread {}, line {}, '{}': {}", entry_.name, block_, thread.number(),
                          instruction.line, instruction.text, what));
}

}  // namespace halfscope::ptx
