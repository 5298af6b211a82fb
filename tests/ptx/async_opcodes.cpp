// Opcodes of asynchronous copies, global to shared: cp.async and its groups.
// Source: PTX ISA, chapter "Asynchronous Copy".
#include <array>

#include "tests/ptx/action.hpp"
#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

/// 16 bytes, the first `bytes` of which are read and the others zero.
void issue_copy(Thread thread, const Operand* o, u64 bytes) {
  if (o[2].value != 16) throw Violation("cp.async.cg copies 16 bytes");
  thread.copies().issue(thread.number(), {thread.get<u64>(o[0]), thread.get<u64>(o[1]), bytes},
                        thread.environment().shared);
}
void copy_all(Thread thread, const Operand* o) {
  issue_copy(thread, o, o[2].value);
}
void copy_some(Thread thread, const Operand* o) {
  issue_copy(thread, o, thread.get<u32>(o[3]));
}
constexpr Action copy(Execute execute) {
  Action action{{}, Kind::thread, execute};
  action.signature.add(address_in(Space::shared)).add(address_in(Space::global));
  action.signature.add({ItemKind::constant, Width::bits32});
  return action;
}
constexpr Action copy_with_size(Execute execute) {
  Action action = copy(execute);
  action.signature.add(item_of<u32>(ItemKind::source));
  return action;
}
void commit(Thread thread, const Operand*) {
  thread.copies().commit();
}
void wait(Thread thread, const Operand* o) {
  thread.copies().wait(thread.number(), o[0].value, thread.environment().global, thread.environment().shared);
}
constexpr Action wait_group() {
  Action action{{}, Kind::thread, each_thread<wait>};
  action.signature.add({ItemKind::constant, Width::bits32});
  return action;
}

const std::array table{
    Opcode{"cp.async.cg.shared.global", copy(each_thread<copy_all>)},
    Opcode{"cp.async.cg.shared.global", copy_with_size(each_thread<copy_some>)},
    Opcode{"cp.async.commit_group", {{}, Kind::thread, each_thread<commit>}},
    Opcode{"cp.async.wait_group", wait_group()},
};

}  // namespace

std::span<const Opcode> async_opcodes() {
  return table;
}

}  // namespace halfscope::ptx
