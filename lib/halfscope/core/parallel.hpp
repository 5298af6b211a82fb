// Threads over independent outputs: results never depend on how many there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <halfscope/core/error.hpp>

namespace halfscope {

/// Sets the number of threads that later calls use (at least 1).
void set_thread_count(int threads);
[[nodiscard]] int thread_count();

namespace detail {
using RangeFunction = void (*)(void* context, std::int64_t index) noexcept;
void parallel_for_each(std::int64_t count, void* context, RangeFunction function);
}  // namespace detail

/// Calls `body(index)` once for each index in [0, count), split over the threads. The split changes with the
/// thread count, so a body must own its outputs whole and never add to another's. A body that throws ends the
/// program, on one thread as on several. Throws std::bad_alloc where the threads' own memory is missing: then
/// no index was visited, and a later loop tries again. Throws InvalidArgument for an instruction set in
/// HALFSCOPE_ISA that is unknown or that this machine lacks.
template <typename Body>
void parallel_for(std::int64_t count, Body&& body) {
  using Function = std::remove_reference_t<Body>;
  detail::parallel_for_each(
      count, const_cast<void*>(static_cast<const void*>(&body)),
      [](void* context, std::int64_t index) noexcept { (*static_cast<Function*>(context))(index); });
}

/// Calls `body(first, count)` for consecutive ranges of at most `grain` that cover [0, total). The ranges do
/// not depend on the thread count; a grain worth some ten microseconds keeps small arrays in one thread.
template <typename Body>
void parallel_for_ranges(std::int64_t total, std::int64_t grain, Body&& body) {
  parallel_for((total + grain - 1) / grain,
               [&](std::int64_t range) { body(range * grain, std::min(grain, total - range * grain)); });
}

}  // namespace halfscope
