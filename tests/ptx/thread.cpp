// One thread of a block: its start, with the special registers, and the error of a register not written.
#include "tests/ptx/thread.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {

Thread::Thread(const Entry& entry, Environment& environment, std::uint32_t number)
    : entry_(&entry),
      environment_(&environment),
      number_(number),
      cells_(entry.registers.size()),
      written_(entry.registers.size()),
      local_("local memory", entry.local_bytes) {}

void Thread::start(std::uint32_t block, std::uint32_t blocks, std::uint32_t threads) {
  const auto set_special = [this](Special special, std::uint32_t value) {
    set(Operand{static_cast<std::uint32_t>(special), 0}, value);
  };
  std::fill(written_.begin(), written_.end(), std::uint8_t{0});
  set(Operand{}, std::uint64_t{0});
  set_special(Special::tid_x, number_);
  set_special(Special::ntid_x, threads);
  set_special(Special::ctaid_x, block);
  set_special(Special::nctaid_x, blocks);
  local_.reset();
  copies_.reset();
  next = 0;
  state = ThreadState::running;
}

void Thread::fail_unwritten(std::uint32_t reg) const {
  throw Violation(fmt::format("register {} is read before it is written", entry_->registers[reg].name));
}

}  // namespace halfscope::ptx
