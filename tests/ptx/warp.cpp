// A warp's way through the code: threads that branch apart go on as soon as they meet again.
#include "tests/ptx/warp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

constexpr Lanes first_lanes(std::size_t count) {
  return count == warp_threads ? all_lanes : (Lanes{1} << count) - 1;
}

/// Without a call where all are at work.
std::uint64_t count_of(Lanes lanes) {
  return lanes == all_lanes ? warp_threads : static_cast<std::uint64_t>(std::popcount(lanes));
}

}  // namespace

Program::Program(const Entry& e, std::vector<std::uint64_t>& executed) : entry(e), counts(executed) {
  steps.reserve(entry.code.size());
  for (const Instruction& instruction : entry.code) {
    const Action& action = all_opcodes()[instruction.opcode]->action;
    steps.push_back({action.execute, instruction.operands.data(), instruction.guard, action.kind,
                     instruction.opcode, instruction.target});
  }
}

Warp::Warp(Program& program, Environment& environment, std::uint32_t first_thread, std::uint32_t threads)
    : program_(program),
      environment_(environment),
      first_thread_(first_thread),
      lanes_(first_lanes(threads)),
      cells_(program.entry.registers.size()),
      written_(program.entry.registers.size()),
      local_(warp_threads, ByteSpace("local memory", program.entry.local_bytes)),
      copies_(warp_threads) {}

void Warp::start(std::uint32_t block, std::uint32_t blocks, std::uint32_t threads) {
  const auto set_all = [this](Special special, std::uint32_t value) {
    cells_[static_cast<std::size_t>(special)].fill(value);
    written_[static_cast<std::size_t>(special)] = all_lanes;
  };
  std::fill(written_.begin(), written_.end(), Lanes{0});
  cells_[zero_register].fill(0);
  written_[zero_register] = all_lanes;
  set_all(Special::ntid_x, threads);
  set_all(Special::ctaid_x, block);
  set_all(Special::nctaid_x, blocks);
  set_all(Special::tid_x, 0);
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    cells_[static_cast<std::size_t>(Special::tid_x)][lane] = thread_of(lane);
    local_[lane].reset();
    copies_[lane].reset();
  }
  next_.fill(0);
  running_ = lanes_;
  waiting_ = finished_ = 0;
}

Warp::Convoy Warp::furthest_back(Lanes lanes) const {
  constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
  Convoy convoy{0, nowhere, nowhere};
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    if (next_[lane] < convoy.place) convoy = {0, next_[lane], convoy.place};
    if (next_[lane] == convoy.place) {
      convoy.lanes |= Lanes{1} << lane;
    } else {
      convoy.limit = std::min(convoy.limit, next_[lane]);
    }
  }
  return convoy;
}

void Warp::run(Lanes group, const LaneOrder& order) {
  order_ = order;
  while ((group & running_) != 0) run_convoy(furthest_back(group & running_));
}

void Warp::run_convoy(Convoy convoy) {
  while (convoy.place < convoy.limit) {
    place_ = convoy.place;
    const Step& step = program_.steps[convoy.place];
    const bool always = step.guard.reg == zero_register;
    const Lanes guarded = always ? convoy.lanes : where(step.guard, convoy.lanes);
    if (guarded == 0) {
      ++convoy.place;
      continue;
    }
    const bool whole_warp = step.kind == Kind::warp && guarded == all_lanes;
    if ((step.kind == Kind::warp && !whole_warp) || step.kind == Kind::barrier) return wait(convoy, guarded);
    program_.counts[step.opcode] += count_of(guarded);
    if (step.kind == Kind::branch) {
      if (!branch(convoy, step, guarded)) return;
    } else if (step.kind == Kind::exit) {
      finish(guarded);
      convoy.lanes &= ~guarded;
      if (convoy.lanes == 0) return;
      ++convoy.place;
    } else {
      step.execute(*this, guarded, step.operands);
      ++convoy.place;
    }
  }
  put(convoy.lanes, convoy.place);
}

/// Whether the convoy stays together.
bool Warp::branch(Convoy& convoy, const Step& step, Lanes taken) {
  if (taken == convoy.lanes) {
    convoy.place = step.target;
    return true;
  }
  put(taken, step.target);
  put(convoy.lanes & ~taken, convoy.place + 1);
  return false;
}

void Warp::put(Lanes lanes, std::uint32_t place) {
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    if ((lanes >> lane & 1) != 0) next_[lane] = place;
  }
}

void Warp::wait(const Convoy& convoy, Lanes guarded) {
  put(guarded, convoy.place);
  put(convoy.lanes & ~guarded, convoy.place + 1);
  running_ &= ~guarded;
  waiting_ |= guarded;
}

void Warp::finish(Lanes lanes) {
  for_each(lanes, [this](std::size_t lane) {
    copies_[lane].finish(thread_of(lane), environment_.global, environment_.shared);
  });
  running_ &= ~lanes;
  finished_ |= lanes;
}

void Warp::run_together() {
  place_ = next_[0];
  lane_ = 0;
  const Step& step = program_.steps[place_];
  step.execute(*this, all_lanes, step.operands);
  program_.counts[step.opcode] += warp_threads;
  pass();
}

void Warp::pass() {
  for (std::uint32_t& place : next_) ++place;
  running_ |= waiting_;
  waiting_ = 0;
}

Lanes Warp::where(const Operand& predicate, Lanes lanes) {
  require_written(predicate, lanes);
  const Cells& cells = cells_[predicate.reg];
  // The lowest bits of 8 cells, gathered into a byte by one product.
  std::array<std::uint8_t, warp_threads> bits;
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    bits[lane] = static_cast<std::uint8_t>((cells[lane] + predicate.value) & 1);
  }
  Lanes found = 0;
  for (std::size_t first = 0; first < warp_threads; first += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, bits.data() + first, sizeof(eight));
    found |= static_cast<Lanes>((eight * 0x0102'0408'1020'4080u) >> 56) << first;
  }
  return found & lanes;
}

void Warp::fail_unwritten(const Operand& operand, Lanes lanes) {
  lane_ = static_cast<std::size_t>(std::countr_zero(lanes & ~written_[operand.reg]));
  throw Violation(
      fmt::format("register {} is read before it is written", program_.entry.registers[operand.reg].name));
}

}  // namespace halfscope::ptx
