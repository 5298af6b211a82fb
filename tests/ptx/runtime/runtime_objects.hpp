// Objects of CUDA's runtime for its tests: kernels of PTX text, streams, device and page-locked memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/ptx/run_kernel.hpp"
#include "tests/ptx/runtime/runtime.hpp"
#include "tests/support/catch.hpp"

extern "C" {
void** __cudaRegisterFatBinary(void* fat_binary);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function, const char* name,
                            int thread_limit, uint3* tid, uint3* bid, dim3* block, dim3* grid, int* warps);
}

namespace halfscope::ptx {

/// The order of streams for the life of the object, whatever the environment says.
class StreamOrderScope {
 public:
  explicit StreamOrderScope(StreamOrder order) : previous_(runtime().streams().exchange_order(order)) {}
  ~StreamOrderScope() { (void)runtime().streams().exchange_order(previous_); }
  StreamOrderScope(const StreamOrderScope&) = delete;
  StreamOrderScope& operator=(const StreamOrderScope&) = delete;

 private:
  StreamOrder previous_;
};

/// An entry of a module, registered as nvcc's host code does it: from a fat binary.
class TestKernel {
 public:
  explicit TestKernel(std::string text, const char* name = "k", std::uint32_t target = 75)
      : text_(std::move(text)) {
    text_.resize((text_.size() + 8) / 8 * 8);  // ends in a zero
    const Entry entry{1, 1, sizeof(Entry), text_.size(), 0, 0, 0, 9, target};
    const Header header{0xBA55ED50, 1, sizeof(Header), sizeof(Entry) + text_.size()};
    binary_.append(reinterpret_cast<const char*>(&header), sizeof(header));
    binary_.append(reinterpret_cast<const char*>(&entry), sizeof(entry)).append(text_);
    Wrapper wrapper{0x466243B1, 1, binary_.data(), nullptr};
    void** const handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, function(), nullptr, name, -1, nullptr, nullptr, nullptr, nullptr,
                           nullptr);
  }
  TestKernel(const TestKernel&) = delete;
  TestKernel& operator=(const TestKernel&) = delete;

  [[nodiscard]] const char* function() const { return reinterpret_cast<const char*>(this); }

  /// With parameters of 64 bits.
  cudaError_t launch(const LaunchConfiguration& c, std::vector<std::uint64_t> values = {}) const {
    std::vector<void*> arguments;
    for (std::uint64_t& value : values) arguments.push_back(&value);
    return cudaLaunchKernel(function(), c.grid, c.block, arguments.data(), c.shared_bytes, c.stream);
  }

 private:
  struct Wrapper {
    std::uint32_t magic, version;
    const void* data;
    const void* unused;
  };
  struct Header {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;
  };
  struct Entry {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;
    std::uint32_t compressed_bytes, unused;
    std::uint16_t minor, major;
    std::uint32_t target;
  };
  std::string text_, binary_;
};

/// Adds its second parameter to the number that the first points to.
[[nodiscard]] inline std::string adding_kernel() {
  return kernel_text("\t.param .u64 out,\n\t.param .u64 term",
                     "\tld.param.u64 \t%rd1, [out];\n\tld.param.u64 \t%rd2, [term];\n"
                     "\tld.global.u64 \t%rd3, [%rd1];\n\tadd.s64 \t%rd3, %rd3, %rd2;\n"
                     "\tst.global.u64 \t[%rd1], %rd3;",
                     75);
}
/// Does nothing.
[[nodiscard]] inline std::string idle_kernel(const std::string& name = "k") {
  std::string text = kernel_text("", "", 75);
  return text.replace(text.find(" k("), 3, " " + name + "(");
}

struct TestStream {
  cudaStream_t stream = nullptr;
  explicit TestStream(unsigned flags = cudaStreamNonBlocking) {
    REQUIRE(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  }
  ~TestStream() { (void)cudaStreamDestroy(stream); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
};

/// One number in device memory, which is there when the object is.
struct DeviceNumber {
  void* memory = nullptr;
  explicit DeviceNumber(std::uint64_t value = 0) {
    REQUIRE(cudaMalloc(&memory, sizeof(value)) == cudaSuccess);
    REQUIRE(cudaMemcpy(memory, &value, sizeof(value), cudaMemcpyHostToDevice) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  }
  ~DeviceNumber() { (void)cudaFree(memory); }
  DeviceNumber(const DeviceNumber&) = delete;
  DeviceNumber& operator=(const DeviceNumber&) = delete;

  [[nodiscard]] std::uint64_t address() const { return address_of(memory); }
  /// After all that is queued.
  [[nodiscard]] std::uint64_t read() const {
    std::uint64_t value = 0;
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    REQUIRE(cudaMemcpy(&value, memory, sizeof(value), cudaMemcpyDeviceToHost) == cudaSuccess);
    return value;
  }
};

/// One number in page-locked memory.
struct PinnedNumber {
  std::uint64_t* value = nullptr;
  explicit PinnedNumber(std::uint64_t first) {
    void* memory = nullptr;
    REQUIRE(cudaMallocHost(&memory, sizeof(first)) == cudaSuccess);
    value = static_cast<std::uint64_t*>(memory);
    *value = first;
  }
  ~PinnedNumber() { (void)cudaFreeHost(value); }
  PinnedNumber(const PinnedNumber&) = delete;
  PinnedNumber& operator=(const PinnedNumber&) = delete;
};

}  // namespace halfscope::ptx
