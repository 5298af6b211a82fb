// Streams through CUDA's calls: work that has been done when a call returns, and work that has not.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "tests/ptx/runtime/runtime_objects.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::ptx::streams_test {
namespace {

constexpr std::size_t bytes = sizeof(std::uint64_t);

TEST_CASE("a kernel and a copy to page-locked memory are carried out when their stream is waited for",
          "[ptx][streams]") {
  const StreamOrderScope late(StreamOrder::late);
  const TestKernel add(adding_kernel());
  const TestStream own, other;
  const DeviceNumber sum(1);
  const PinnedNumber seen(77);
  REQUIRE(add.launch({1, 1, 0, own.stream}, {sum.address(), 4}) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(seen.value, sum.memory, bytes, cudaMemcpyDeviceToHost, own.stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(other.stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
  CHECK(*seen.value == 77);
  CHECK(cudaStreamSynchronize(own.stream) == cudaSuccess);
  CHECK(*seen.value == 5);
}

TEST_CASE("with streams that work at once nothing waits", "[ptx][streams]") {
  const StreamOrderScope now(StreamOrder::now);
  const TestStream own;
  const DeviceNumber number(5);
  const PinnedNumber seen(77);
  REQUIRE(cudaMemcpyAsync(seen.value, number.memory, bytes, cudaMemcpyDeviceToHost, own.stream) ==
          cudaSuccess);
  CHECK(*seen.value == 5);
}

TEST_CASE("pageable memory is read when a copy is queued, page-locked memory when it is made",
          "[ptx][streams]") {
  const StreamOrderScope late(StreamOrder::late);
  const TestStream own;
  const DeviceNumber from_pageable, from_pinned;
  std::uint64_t pageable = 1;
  const PinnedNumber pinned(1);
  for (const auto& [to, from] :
       {std::pair<void*, const void*>{from_pageable.memory, &pageable}, {from_pinned.memory, pinned.value}})
    REQUIRE(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, own.stream) == cudaSuccess);
  pageable = 2;
  *pinned.value = 2;
  CHECK(from_pageable.read() == 1);
  CHECK(from_pinned.read() == 2);
}

TEST_CASE("a copy to pageable memory has been made when the call returns", "[ptx][streams]") {
  const StreamOrderScope late(StreamOrder::late);
  const TestKernel add(adding_kernel());
  const TestStream own;
  const DeviceNumber sum(1);
  std::uint64_t seen = 0;
  REQUIRE(add.launch({1, 1, 0, own.stream}, {sum.address(), 4}) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(&seen, sum.memory, bytes, cudaMemcpyDefault, own.stream) == cudaSuccess);
  CHECK(seen == 5);
}

TEST_CASE("a synchronous copy waits for blocking streams alone, and not for its own last part",
          "[ptx][streams]") {
  const StreamOrderScope late(StreamOrder::late);
  const TestKernel add(adding_kernel());
  const TestStream blocking(cudaStreamDefault), nonblocking;
  const DeviceNumber first(1), second(1);
  REQUIRE(add.launch({1, 1, 0, blocking.stream}, {first.address(), 1}) == cudaSuccess);
  REQUIRE(add.launch({1, 1, 0, nonblocking.stream}, {second.address(), 1}) == cudaSuccess);
  std::uint64_t seen = 0;
  REQUIRE(cudaMemcpy(&seen, first.memory, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(seen == 2);
  REQUIRE(cudaMemcpy(&seen, second.memory, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(seen == 1);
  seen = 9;  // staged when the call returns; on its way to the device
  REQUIRE(cudaMemcpy(first.memory, &seen, bytes, cudaMemcpyHostToDevice) == cudaSuccess);
  const PinnedNumber early(0);
  REQUIRE(cudaMemcpyAsync(early.value, first.memory, bytes, cudaMemcpyDeviceToHost, nonblocking.stream) ==
          cudaSuccess);
  REQUIRE(cudaStreamSynchronize(nonblocking.stream) == cudaSuccess);
  CHECK(*early.value == 2);
  CHECK(first.read() == 9);
}

TEST_CASE("the legacy stream has two handles", "[ptx][streams]") {
  const StreamOrderScope late(StreamOrder::late);
  const TestStream blocking(cudaStreamDefault);
  const DeviceNumber number(5);
  const PinnedNumber seen(77);
  REQUIRE(cudaMemsetAsync(number.memory, 0, bytes, cudaStreamLegacy) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(seen.value, number.memory, bytes, cudaMemcpyDefault, blocking.stream) ==
          cudaSuccess);
  CHECK(cudaStreamSynchronize(cudaStreamLegacy) == cudaSuccess);
  CHECK(*seen.value == 0);
  CHECK(cudaStreamSynchronize(cudaStreamPerThread) == cudaErrorInvalidResourceHandle);  // not provided
  (void)cudaGetLastError();
}

TEST_CASE("cudaFree waits for the device, but not for memory of the pool", "[ptx][streams]") {
  const StreamOrderScope late(StreamOrder::late);
  const TestStream own;
  const PinnedNumber seen(77);
  const DeviceNumber number(5);
  void *pooled = nullptr, *plain = nullptr;
  REQUIRE(cudaMallocAsync(&pooled, bytes, own.stream) == cudaSuccess);
  REQUIRE(cudaMalloc(&plain, bytes) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(seen.value, number.memory, bytes, cudaMemcpyDeviceToHost, own.stream) ==
          cudaSuccess);
  CHECK(cudaFree(pooled) == cudaSuccess);
  CHECK(*seen.value == 77);
  CHECK(cudaFree(plain) == cudaSuccess);
  CHECK(*seen.value == 5);
}

TEST_CASE("a copy of page-locked memory that was freed before it is a fault", "[ptx][streams]") {
  const StreamOrderScope late(StreamOrder::late);
  const TestStream own;
  const DeviceNumber number;
  void* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, bytes) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(number.memory, pinned, bytes, cudaMemcpyHostToDevice, own.stream) == cudaSuccess);
  REQUIRE(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaErrorInvalidValue);
  check_says(message_of<Fault>([&] { (void)cudaStreamSynchronize(own.stream); }),
             {"copy from host to device", "cudaFreeHost"});
}

TEST_CASE("a fault comes out of the call that forces it, with the kernel's name", "[ptx][streams]") {
  const StreamOrderScope late(StreamOrder::late);
  const TestKernel add(adding_kernel());
  const TestStream own;
  void* freed = nullptr;
  REQUIRE(cudaMallocAsync(&freed, bytes, own.stream) == cudaSuccess);
  REQUIRE(cudaFreeAsync(freed, own.stream) == cudaSuccess);
  CHECK(add.launch({1, 1, 0, own.stream}, {reinterpret_cast<std::uintptr_t>(freed), 1}) == cudaSuccess);
  check_says(message_of<Fault>([&] { (void)cudaStreamSynchronize(own.stream); }), {"k, block 0", "freed"});
}

/// Exit status of a process that calls `work` and ends without waiting for anything.
int status_of_process(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    (void)std::freopen("/dev/null", "w", stderr);
    work();
    std::exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("work that nothing waits for is carried out at the end of the process", "[ptx][streams]") {
  const StreamOrderScope late(StreamOrder::late);
  const TestKernel add(adding_kernel());
  const TestStream own;
  const DeviceNumber sum(1);
  const auto adds_at = [&](std::uint64_t address) {
    return [&add, &own, address] { (void)add.launch({1, 1, 0, own.stream}, {address, 1}); };
  };
  CHECK(status_of_process(adds_at(sum.address())) == 0);
  CHECK(status_of_process(adds_at(sum.address() + 8)) == 1);
}

TEST_CASE("a copy in the wrong direction is refused", "[ptx][streams]") {
  const DeviceNumber number(5);
  std::uint64_t seen = 0;
  CHECK(cudaMemcpy(&seen, number.memory, bytes, cudaMemcpyHostToDevice) == cudaErrorInvalidMemcpyDirection);
  CHECK(cudaGetLastError() == cudaErrorInvalidMemcpyDirection);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("handles that were destroyed are refused", "[ptx][streams]") {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(event, nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventSynchronize(event) == cudaErrorInvalidResourceHandle);
  (void)cudaGetLastError();
}

TEST_CASE("an event outlasts its stream", "[ptx][streams]") {
  const StreamOrderScope late(StreamOrder::late);
  const DeviceNumber number(5);
  const PinnedNumber seen(77);
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(seen.value, number.memory, bytes, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(*seen.value == 77);
  CHECK(cudaEventSynchronize(event) == cudaSuccess);
  CHECK(*seen.value == 5);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
}

TEST_CASE("events are over when the work before them is", "[ptx][streams]") {
  const StreamOrderScope late(StreamOrder::late);
  const TestStream own;
  const DeviceNumber number(5);
  const PinnedNumber seen(77);
  cudaEvent_t start = nullptr, end = nullptr, untimed = nullptr;
  float milliseconds = 0;
  REQUIRE(cudaEventCreate(&start) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming) == cudaSuccess);
  CHECK(cudaEventSynchronize(end) == cudaSuccess);  // never recorded
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaEventRecord(start, own.stream) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(seen.value, number.memory, bytes, cudaMemcpyDeviceToHost, own.stream) ==
          cudaSuccess);
  REQUIRE(cudaEventRecord(end, own.stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(untimed, own.stream) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorNotReady);
  CHECK(cudaEventSynchronize(start) == cudaSuccess);
  CHECK(*seen.value == 77);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorNotReady);
  CHECK(cudaEventSynchronize(end) == cudaSuccess);
  CHECK(*seen.value == 5);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, untimed) == cudaErrorInvalidResourceHandle);
  for (cudaEvent_t event : {start, end, untimed}) CHECK(cudaEventDestroy(event) == cudaSuccess);
  (void)cudaGetLastError();
}

}  // namespace
}  // namespace halfscope::ptx::streams_test
