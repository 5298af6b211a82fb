// Kernels of the tests: the text around a body, and its run on a machine.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/fault.hpp"
#include "tests/ptx/machine.hpp"

namespace halfscope::ptx {

/// A module of one entry `k`, as nvcc writes it, with many registers of each type.
[[nodiscard]] inline std::string kernel_text(std::string_view parameters, std::string_view body,
                                             int target = 80) {
  return fmt::format(
      ".version 9.0\n.target sm_{}\n.address_size 64\n\n"
      ".extern .shared .align 16 .b8 dynamic[];\n\n"
      ".visible .entry k(\n{}\n)\n{{\n"
      "\t.reg .pred \t%p<9>;\n\t.reg .b16 \t%rs<9>;\n\t.reg .b32 \t%r<33>;\n\t.reg .b64 \t%rd<17>;\n"
      "{}\n\tret;\n}}\n",
      target, parameters, body);
}

/// The bytes of parameters that all have 64 bits.
[[nodiscard]] inline std::vector<std::byte> parameters_of(const std::vector<std::uint64_t>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(std::uint64_t));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T>
[[nodiscard]] std::uint64_t to_device(Machine& machine, const std::vector<T>& values) {
  const std::uint64_t address = machine.memory().allocate(values.size() * sizeof(T));
  machine.memory().write(address, std::as_bytes(std::span(values)));
  return address;
}

template <typename T>
[[nodiscard]] std::vector<T> to_host(Machine& machine, std::uint64_t address, std::size_t count) {
  std::vector<T> values(count);
  machine.memory().read(std::as_writable_bytes(std::span(values)), address);
  return values;
}

/// A body that reads `in` and writes `out`: their addresses are in %rd1 and %rd2.
[[nodiscard]] inline std::string in_out_kernel(std::string_view body, int target = 80) {
  return kernel_text("\t.param .u64 in,\n\t.param .u64 out",
                     fmt::format("\tld.param.u64 \t%rd1, [in];\n\tld.param.u64 \t%rd2, [out];\n{}", body),
                     target);
}

/// A run of such a kernel.
struct InOut {
  std::string body;
  std::vector<std::uint32_t> in;
  std::size_t out_count = 0;
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;
  std::size_t dynamic_shared_bytes = 0;
};

/// Runs it; returns the output.
[[nodiscard]] inline std::vector<std::uint32_t> run_in_out(const InOut& run,
                                                           const MachineOptions& options = {}) {
  const int target = options.capability.major >= 8 ? 80 : 75;
  const Module module = parse(in_out_kernel(run.body, target));
  Machine machine(options);
  const std::uint64_t in = to_device(machine, run.in);
  const std::uint64_t out = machine.memory().allocate(run.out_count * sizeof(std::uint32_t));
  const std::vector<std::byte> parameters = parameters_of({in, out});
  machine.launch(module, {"k", run.blocks, run.threads, run.dynamic_shared_bytes, parameters});
  return to_host<std::uint32_t>(machine, out, run.out_count);
}

}  // namespace halfscope::ptx
