// Memory of the CUDA device: defined by device_cuda.cpp, and by device_simulated.cpp in a build without CUDA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halfscope::device_memory {

/// Throws unless the device can be used: see DeviceScope.
void require_device();

/// Uninitialised, aligned to 256 bytes, from a pool that keeps what is released. Throws RuntimeFailure where
/// the device has no more.
[[nodiscard]] void* allocate(std::size_t bytes);
void release(void* memory, std::size_t bytes) noexcept;

enum class Direction : std::uint8_t { to_device, to_host, within_device };
/// After everything queued before. Only where it writes to the host does it wait for its end: what it reads
/// from the host has been set aside when it returns.
void copy(void* to, const void* from, std::size_t bytes, Direction direction);
void fill_zero(void* memory, std::size_t bytes);

/// From here on this thread's work is recorded, not done; neither `allocate` nor a copy to the host is
/// allowed.
void begin_recording();
/// Ends the recording and launches it. `graph`, null at first, is what the last one was launched as: it is
/// updated where that is possible, and then the result is true, or replaced.
bool launch_recording(void*& graph);
/// Ends the recording without doing what it holds.
void drop_recording() noexcept;
void release_graph(void* graph) noexcept;

/// How often any thread has waited for the device.
[[nodiscard]] std::int64_t host_waits();

}  // namespace halfscope::device_memory
