// Opcodes that decide what runs next: branches, ends, barriers, traps.
#include <array>

#include "tests/ptx/action.hpp"
#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

constexpr Action branch() {
  Action action{{}, Kind::branch, nullptr};
  action.signature.add({ItemKind::label, Width::bits64});
  return action;
}
constexpr Action end_of_thread() {
  return {{}, Kind::exit, nullptr};
}
/// The number of the barrier is no matter: all threads of a block must be at the same instruction.
constexpr Action barrier() {
  Action action{{}, Kind::barrier, nullptr};
  action.signature.add({ItemKind::constant, Width::bits32});
  return action;
}

void trap(Thread, const Operand*) {
  throw Violation("the kernel traps");
}

constexpr std::array table{
    Opcode{"bra", branch()},
    Opcode{"bra.uni", branch()},
    Opcode{"ret", end_of_thread()},
    Opcode{"bar.sync", barrier()},
    Opcode{"trap", {{}, Kind::thread, each_thread<trap>}},
};

}  // namespace

std::span<const Opcode> control_opcodes() {
  return table;
}

}  // namespace halfscope::ptx
