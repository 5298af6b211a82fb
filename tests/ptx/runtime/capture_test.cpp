// Captures through CUDA's calls: calls that they forbid, and graphs that are launched and updated.
#include <functional>
#include <thread>
#include <utility>

#include "tests/ptx/runtime/runtime_objects.hpp"

namespace halfscope::ptx::capture_test {
namespace {

constexpr std::size_t bytes = sizeof(std::uint64_t);

cudaError_t begin(const TestStream& stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
  return cudaStreamBeginCapture(stream.stream, mode);
}
cudaError_t end(const TestStream& stream) {
  cudaGraph_t graph = nullptr;
  const cudaError_t status = cudaStreamEndCapture(stream.stream, &graph);
  CHECK((graph != nullptr) == (status == cudaSuccess));
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();
  return status;
}

/// Objects of a captured thread, made before.
struct Objects {
  TestStream own, other;
  DeviceNumber number{5};
  PinnedNumber pinned{7};
  void *plain = nullptr, *host = nullptr;
  cudaEvent_t event = nullptr;

  Objects() {
    REQUIRE(cudaMalloc(&plain, bytes) == cudaSuccess);
    REQUIRE(cudaMallocHost(&host, bytes) == cudaSuccess);
    REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  }
  ~Objects() {
    (void)cudaFree(plain);
    (void)cudaFreeHost(host);
    (void)cudaEventDestroy(event);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
};

struct Call {
  const char* name;
  std::function<cudaError_t(Objects&)> call;
};

/// Calls that allocate, free or wait.
std::vector<Call> unsafe_calls() {
  return {
      {"cudaMalloc",
       [](Objects&) {
         void* memory = nullptr;
         return cudaMalloc(&memory, bytes);
       }},
      {"cudaFree", [](Objects& o) { return cudaFree(o.plain); }},
      {"cudaMallocHost",
       [](Objects&) {
         void* memory = nullptr;
         return cudaMallocHost(&memory, bytes);
       }},
      {"cudaFreeHost", [](Objects& o) { return cudaFreeHost(o.host); }},
      {"cudaMemcpy",
       [](Objects& o) { return cudaMemcpy(o.pinned.value, o.number.memory, bytes, cudaMemcpyDefault); }},
      {"cudaMemcpy within the device",
       [](Objects& o) { return cudaMemcpy(o.plain, o.number.memory, bytes, cudaMemcpyDefault); }},
      {"cudaDeviceSynchronize", [](Objects&) { return cudaDeviceSynchronize(); }},
      {"cudaStreamSynchronize", [](Objects& o) { return cudaStreamSynchronize(o.own.stream); }},
      {"cudaStreamSynchronize of another stream",
       [](Objects& o) { return cudaStreamSynchronize(o.other.stream); }},
      {"cudaEventSynchronize", [](Objects& o) { return cudaEventSynchronize(o.event); }},
  };
}

TEST_CASE("calls that a capture forbids return an error and invalidate it", "[ptx][capture]") {
  for (const Call& forbidden : unsafe_calls()) {
    Objects objects;
    REQUIRE(begin(objects.own) == cudaSuccess);
    INFO(forbidden.name);
    CHECK(forbidden.call(objects) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaGetLastError() == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaMemsetAsync(objects.number.memory, 0, bytes, objects.own.stream) ==
          cudaErrorStreamCaptureInvalidated);
    CHECK(end(objects.own) == cudaErrorStreamCaptureInvalidated);
    CHECK(objects.number.read() == 5);  // the stream and the device are free again
  }
}

cudaError_t in_another_thread(const std::function<cudaError_t()>& call) {
  cudaError_t status = cudaSuccess;
  std::thread([&] { status = call(); }).join();
  return status;
}

TEST_CASE("a capture forbids unsafe calls by its mode", "[ptx][capture]") {
  const auto allocates = [] {
    void* memory = nullptr;
    return cudaMalloc(&memory, bytes);
  };
  constexpr cudaError_t unsupported = cudaErrorStreamCaptureUnsupported;
  const TestStream own;
  for (const auto& [mode, here, elsewhere] :
       {std::tuple(cudaStreamCaptureModeGlobal, unsupported, unsupported),
        std::tuple(cudaStreamCaptureModeThreadLocal, unsupported, cudaSuccess),
        std::tuple(cudaStreamCaptureModeRelaxed, cudaSuccess, cudaSuccess)}) {
    REQUIRE(begin(own, mode) == cudaSuccess);
    CHECK(in_another_thread(allocates) == elsewhere);
    CHECK(end(own) == (elsewhere == cudaSuccess ? cudaSuccess : cudaErrorStreamCaptureInvalidated));
    REQUIRE(begin(own, mode) == cudaSuccess);
    CHECK(allocates() == here);
    CHECK(end(own) == (here == cudaSuccess ? cudaSuccess : cudaErrorStreamCaptureInvalidated));
  }
}

TEST_CASE("a capture begins and ends as CUDA has it", "[ptx][capture]") {
  const TestStream own;
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);
  CHECK(end(own) == cudaErrorIllegalState);
  REQUIRE(begin(own) == cudaSuccess);
  CHECK(begin(own) == cudaErrorIllegalState);
  CHECK(in_another_thread([&] { return end(own); }) == cudaErrorStreamCaptureWrongThread);
  CHECK(end(own) == cudaSuccess);
  REQUIRE(begin(own, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(in_another_thread([&] { return end(own); }) == cudaSuccess);
}

TEST_CASE("the legacy stream may not depend on a captured stream", "[ptx][capture]") {
  const DeviceNumber number(5);
  for (const auto& [flags, error] : {std::pair<unsigned, cudaError_t>{cudaStreamNonBlocking, cudaSuccess},
                                     {cudaStreamDefault, cudaErrorStreamCaptureImplicit}}) {
    const TestStream own(flags);
    REQUIRE(begin(own) == cudaSuccess);
    CHECK(cudaMemsetAsync(number.memory, 0, bytes, nullptr) == error);
    CHECK(end(own) == (error == cudaSuccess ? cudaSuccess : cudaErrorStreamCaptureInvalidated));
  }
}

TEST_CASE("an event that was recorded in a capture cannot be waited for", "[ptx][capture]") {
  Objects objects;
  REQUIRE(begin(objects.own) == cudaSuccess);
  REQUIRE(cudaEventRecord(objects.event, objects.own.stream) == cudaSuccess);
  CHECK(cudaEventSynchronize(objects.event) == cudaErrorCapturedEvent);
  CHECK(end(objects.own) == cudaErrorStreamCaptureInvalidated);
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, objects.event, objects.event) == cudaErrorCapturedEvent);
  REQUIRE(cudaEventRecord(objects.event, objects.own.stream) == cudaSuccess);
  CHECK(cudaEventSynchronize(objects.event) == cudaSuccess);
  (void)cudaGetLastError();
}

TEST_CASE("memory of the pool is neither taken nor returned in a capture", "[ptx][capture]") {
  const TestStream own;
  void *before = nullptr, *within = nullptr;
  REQUIRE(cudaMallocAsync(&before, bytes, own.stream) == cudaSuccess);
  REQUIRE(begin(own) == cudaSuccess);
  CHECK(cudaMallocAsync(&within, bytes, own.stream) == cudaErrorNotSupported);
  CHECK(cudaFreeAsync(before, own.stream) == cudaErrorInvalidValue);
  CHECK(end(own) == cudaSuccess);
  CHECK(cudaFreeAsync(before, own.stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(own.stream) == cudaSuccess);
}

/// A graph of what `queue` queues on the stream.
cudaGraph_t captured(const TestStream& stream, const std::function<void()>& queue) {
  cudaGraph_t graph = nullptr;
  REQUIRE(begin(stream) == cudaSuccess);
  queue();
  REQUIRE(cudaStreamEndCapture(stream.stream, &graph) == cudaSuccess);
  return graph;
}

TEST_CASE("host memory in a graph is read at each launch", "[ptx][capture]") {
  const StreamOrderScope late(StreamOrder::late);
  Objects o;
  std::uint64_t pageable = 1;
  const DeviceNumber other;
  const cudaGraph_t graph = captured(o.own, [&] {
    REQUIRE(cudaMemcpyAsync(o.number.memory, o.pinned.value, bytes, cudaMemcpyDefault, o.own.stream) ==
            cudaSuccess);
    REQUIRE(cudaMemcpyAsync(other.memory, &pageable, bytes, cudaMemcpyDefault, o.own.stream) == cudaSuccess);
  });
  CHECK(o.number.read() == 5);
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  for (const std::uint64_t value : {11u, 12u}) {
    *o.pinned.value = value;
    pageable = 100 + value;
    REQUIRE(cudaGraphLaunch(executable, o.own.stream) == cudaSuccess);
    CHECK(o.number.read() == value);
    CHECK(other.read() == 100 + value);
  }
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
}

cudaGraphExecUpdateResult update(cudaGraphExec_t executable, cudaGraph_t graph) {
  cudaGraphExecUpdateResultInfo info{};
  const cudaError_t status = cudaGraphExecUpdate(executable, graph, &info);
  CHECK(status ==
        (info.result == cudaGraphExecUpdateSuccess ? cudaSuccess : cudaErrorGraphExecUpdateFailure));
  (void)cudaGetLastError();
  (void)cudaGraphDestroy(graph);
  return info.result;
}

TEST_CASE("an executable graph takes parameters of the same operations in the same order", "[ptx][capture]") {
  const StreamOrderScope late(StreamOrder::late);
  const TestKernel add(adding_kernel()), idle(idle_kernel("idle"), "idle");
  const TestStream own;
  const DeviceNumber sum(1);
  const auto adds = [&](std::uint64_t term) {
    REQUIRE(add.launch({1, 1, 0, own.stream}, {sum.address(), term}) == cudaSuccess);
  };
  const auto idles = [&] { REQUIRE(idle.launch({1, 1, 0, own.stream}) == cudaSuccess); };
  const auto fills = [&](std::size_t height) {
    REQUIRE(cudaMemset2DAsync(sum.memory, 1, 0, 1, height, own.stream) == cudaSuccess);
  };
  const cudaGraph_t graph = captured(own, [&] { fills(8), adds(1), idles(); });
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  const auto result = [&](const std::function<void()>& queue) {
    return update(executable, captured(own, queue));
  };
  CHECK(result([&] { fills(8), adds(1); }) == cudaGraphExecUpdateErrorTopologyChanged);
  CHECK(result([&] { fills(8), fills(8), idles(); }) == cudaGraphExecUpdateErrorNodeTypeChanged);
  CHECK(result([&] { fills(8), idles(), adds(1); }) == cudaGraphExecUpdateErrorFunctionChanged);
  CHECK(result([&] { fills(4), adds(1), idles(); }) == cudaGraphExecUpdateErrorParametersChanged);
  REQUIRE(cudaGraphLaunch(executable, own.stream) == cudaSuccess);
  CHECK(sum.read() == 1);  // as it was first
  CHECK(result([&] { fills(8), adds(3), idles(); }) == cudaGraphExecUpdateSuccess);
  REQUIRE(cudaGraphLaunch(executable, own.stream) == cudaSuccess);
  CHECK(sum.read() == 3);
  CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
}

}  // namespace
}  // namespace halfscope::ptx::capture_test
