// Launches that CUDA refuses, with the error that it gives and the last error that it leaves.
#include <fmt/format.h>

#include <set>

#include "tests/ptx/runtime/runtime_objects.hpp"

namespace halfscope::ptx::launch_test {
namespace {

struct LaunchCase {
  std::string_view name;
  LaunchConfiguration launch;
  cudaError_t error;
};

void check_launches(const TestKernel& kernel, const std::vector<LaunchCase>& cases) {
  for (const LaunchCase& c : cases) {
    INFO(c.name);
    CHECK(kernel.launch(c.launch) == c.error);
    CHECK(cudaGetLastError() == c.error);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
  }
}

TEST_CASE("launches outside the device's limits are refused", "[ptx][launch]") {
  constexpr auto configuration = cudaErrorInvalidConfiguration;
  check_launches(
      TestKernel(idle_kernel()),
      {
          {"all right", {2, 1024}, cudaSuccess},
          {"no blocks", {0, 32}, configuration},
          {"no threads", {1, 0}, configuration},
          {"too many blocks", {0x8000'0000u, 1}, configuration},
          {"blocks along y", {{1, 65536, 1}, 1}, configuration},
          {"too many threads", {1, 1025}, configuration},
          {"threads along z", {1, {1, 1, 65}}, configuration},
          {"threads of all", {1, {32, 33, 1}}, configuration},
          {"shared memory", {1, 1, 49152}, cudaSuccess},
          {"too much of it", {1, 1, 49153}, cudaErrorInvalidValue},
          {"no stream", {1, 1, 0, reinterpret_cast<cudaStream_t>(8)}, cudaErrorInvalidResourceHandle},
      });
}

TEST_CASE("a kernel's own bounds are limits too", "[ptx][launch]") {
  std::string text = idle_kernel();
  text.insert(text.find('{'), ".maxntid 96\n");
  check_launches(TestKernel(text),
                 {{"as many", {1, 96}, cudaSuccess}, {"more", {1, 97}, cudaErrorInvalidConfiguration}});
  const TestKernel shared(kernel_text("", "\t.shared .align 16 .b8 tile[1024];", 75));
  check_launches(shared, {{"beside static memory", {1, 1, 48128}, cudaSuccess},
                          {"too much beside it", {1, 1, 48129}, cudaErrorInvalidValue}});
}

cudaError_t ask_for(const TestKernel& kernel, int bytes) {
  return cudaFuncSetAttribute(kernel.function(), cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

TEST_CASE("a kernel has more dynamic shared memory only where it asked for it", "[ptx][launch]") {
  const TestKernel kernel(idle_kernel()), other(idle_kernel());
  const auto most = static_cast<int>(most_shared_bytes(runtime().capability()));
  CHECK(ask_for(kernel, most + 1) == cudaErrorInvalidValue);
  CHECK(ask_for(kernel, -1) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(ask_for(kernel, 60000) == cudaSuccess);
  check_launches(kernel,
                 {{"as much", {1, 1, 60000}, cudaSuccess}, {"more", {1, 1, 60001}, cudaErrorInvalidValue}});
  check_launches(other, {{"another kernel", {1, 1, 60000}, cudaErrorInvalidValue}});
  const TestKernel shared(kernel_text("", "\t.shared .align 16 .b8 tile[1024];", 75));
  CHECK(ask_for(shared, most - 1023) == cudaErrorInvalidValue);
  CHECK(ask_for(shared, most - 1024) == cudaSuccess);
  (void)cudaGetLastError();
}

TEST_CASE("static shared memory has its own limit, which nothing raises", "[ptx][launch]") {
  const auto with_static = [](int bytes) {
    return kernel_text("", fmt::format("\t.shared .align 16 .b8 tile[{}];", bytes), 75);
  };
  const TestKernel most(with_static(49152)), more(with_static(49168));
  check_launches(most, {{"all of it", {1, 1}, cudaSuccess}});
  CHECK(ask_for(more, 0) == cudaErrorInvalidPtx);
  check_launches(more, {{"more", {1, 1}, cudaErrorInvalidPtx}});
}

TEST_CASE("kernels that the device cannot have are refused", "[ptx][launch]") {
  const TestKernel newer(kernel_text("", "", 120), "k", 120);
  check_launches(newer, {{"for a newer device", {1, 1}, cudaErrorNoKernelImageForDevice}});
  const int unknown = 0;
  CHECK(cudaLaunchKernel(&unknown, 1, 1, nullptr, 0, nullptr) == cudaErrorInvalidDeviceFunction);
  CHECK(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
}

TEST_CASE("a status has a text of its own", "[ptx][launch]") {
  std::set<std::string> texts;
  const std::vector<cudaError_t> errors{cudaErrorUnknown,
                                        cudaSuccess,
                                        cudaErrorInvalidValue,
                                        cudaErrorInvalidConfiguration,
                                        cudaErrorStreamCaptureUnsupported,
                                        cudaErrorStreamCaptureInvalidated,
                                        cudaErrorCapturedEvent,
                                        cudaErrorGraphExecUpdateFailure};
  for (const cudaError_t error : errors) texts.insert(cudaGetErrorString(error));
  CHECK(texts.size() == errors.size());
}

}  // namespace
}  // namespace halfscope::ptx::launch_test
