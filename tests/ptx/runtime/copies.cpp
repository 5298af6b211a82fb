// Copies between host and device memory by their ends: device, page-locked host, pageable host.
#include "tests/ptx/runtime/copies.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

bool is_on_device(const void* pointer) {
  return is_device_address(address_of(pointer));
}

cudaMemcpyKind kind_of(const Copy& copy) {
  if (is_on_device(copy.to))
    return is_on_device(copy.from) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return is_on_device(copy.from) ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

std::string_view side(const void* pointer) {
  return is_on_device(pointer) ? "device" : "host";
}

std::string name_of(const Copy& copy) {
  return fmt::format("copy from {} to {}", side(copy.from), side(copy.to));
}

/// The page-locked allocation at each end, if there is one, as it is when the copy is queued.
struct Ends {
  std::uint64_t to = 0, from = 0;
};
Ends ends_of(Runtime& device, const Copy& copy) {
  return {device.host_memory().identity(copy.to, copy.bytes),
          device.host_memory().identity(copy.from, copy.bytes)};
}

void check_alive(std::uint64_t queued, std::uint64_t found) {
  if (queued != 0 && queued != found) throw Violation("host memory is used after cudaFreeHost");
}

Operation operation_of(Runtime& device, const Copy& copy) {
  const auto run = [&device, copy, queued = ends_of(device, copy)] {
    const Ends found = ends_of(device, copy);
    check_alive(queued.to, found.to);
    check_alive(queued.from, found.from);
    device.copy(copy.to, copy.from, copy.bytes);
  };
  return {OperationKind::copy, name_of(copy), run};
}

Operation staged_operation(Runtime& device, const Copy& copy) {
  const auto* first = static_cast<const std::byte*>(copy.from);
  const auto run = [&device, copy, bytes = std::vector<std::byte>(first, first + copy.bytes)] {
    device.copy(copy.to, bytes.data(), bytes.size());
  };
  return {OperationKind::copy, name_of(copy), run};
}

bool is_pageable(Runtime& device, const void* pointer, std::size_t bytes) {
  return !is_on_device(pointer) && device.host_memory().identity(pointer, bytes) == 0;
}
/// Whether the host's bytes are read when the copy is queued.
bool is_staged(Runtime& device, const Copy& copy) {
  return is_on_device(copy.to) && is_pageable(device, copy.from, copy.bytes);
}

bool is_right_kind(const Copy& copy) {
  return copy.kind == cudaMemcpyDefault || copy.kind == kind_of(copy);
}

}  // namespace

cudaError_t queue_copy(Runtime& device, const Copy& copy, cudaStream_t stream) {
  Streams& streams = device.streams();
  if (!is_right_kind(copy)) return cudaErrorInvalidMemcpyDirection;
  if (streams.is_captured(stream)) return streams.queue(stream, operation_of(device, copy));
  if (is_staged(device, copy)) return streams.queue(stream, staged_operation(device, copy));
  if (const cudaError_t error = streams.queue(stream, operation_of(device, copy))) return error;
  const bool waits = is_pageable(device, copy.to, copy.bytes) || kind_of(copy) == cudaMemcpyHostToHost;
  return waits ? streams.synchronize(stream) : cudaSuccess;
}

cudaError_t copy_and_wait(Runtime& device, const Copy& copy) {
  Streams& streams = device.streams();
  if (!is_right_kind(copy)) return cudaErrorInvalidMemcpyDirection;
  if (const cudaError_t error = streams.unsafe_legacy()) return error;
  if (is_staged(device, copy)) {
    if (const cudaError_t error = streams.synchronize(nullptr)) return error;
    return queue_copy(device, copy, nullptr);
  }
  if (const cudaError_t error = queue_copy(device, copy, nullptr)) return error;
  return kind_of(copy) == cudaMemcpyDeviceToDevice ? cudaSuccess : streams.synchronize(nullptr);
}

}  // namespace halfscope::ptx
