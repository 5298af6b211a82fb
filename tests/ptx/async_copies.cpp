// Asynchronous copies of a thread, carried out as late as allowed.
#include "tests/ptx/async_copies.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

constexpr std::size_t chunk = 16;

void carry_out(std::uint32_t thread, const AsyncCopy& copy, const GlobalMemory& global,
               SharedMemory& shared) {
  std::array<std::byte, chunk> bytes{};
  if (copy.bytes != 0) global.read(std::span(bytes).first(copy.bytes), copy.from);
  shared.end_copy(thread, copy.to, bytes);
}

}  // namespace

void AsyncCopies::issue(std::uint32_t thread, const AsyncCopy& copy, SharedMemory& shared) {
  if (copy.bytes > chunk) {
    throw Violation(fmt::format("cp.async copies 16 bytes, its source has {}", copy.bytes));
  }
  if (copy.bytes != 0) check_alignment(copy.from, chunk);
  shared.begin_copy(thread, copy.to, chunk);
  open_.push_back(copy);
}

void AsyncCopies::commit() {
  groups_.push_back(std::exchange(open_, {}));
}

void AsyncCopies::wait(std::uint32_t thread, std::size_t pending, const GlobalMemory& global,
                       SharedMemory& shared) {
  for (; groups_.size() > pending; groups_.erase(groups_.begin())) {
    for (const AsyncCopy& copy : groups_.front()) carry_out(thread, copy, global, shared);
  }
}

void AsyncCopies::finish(std::uint32_t thread, const GlobalMemory& global, SharedMemory& shared) {
  if (open_.empty() && groups_.empty()) return;
  commit();
  wait(thread, 0, global, shared);
}

void AsyncCopies::reset() {
  open_.clear();
  groups_.clear();
}

}  // namespace halfscope::ptx
