// The device behind the stand-in for CUDA's runtime; HALFSCOPE_PTX_... in the environment choose its
// capability, its schedule, when streams work, the file of its coverage, and a mutant that its code has.
#include "tests/ptx/runtime/runtime.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "tests/ptx/fault.hpp"
#include "tests/ptx/runtime/coverage.hpp"

namespace halfscope::ptx {
namespace {

struct NamedCapability {
  std::string_view name;
  ComputeCapability value;
};
/// Capabilities that the library's objects have PTX for.
constexpr NamedCapability capabilities[]{{"75", {7, 5}}, {"80", {8, 0}}, {"90", {9, 0}}};

std::string setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

std::uint64_t parse_seed(std::string_view text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size())
    throw InvalidArgument(fmt::format("seed '{}' is no number from 0 to 2^64 - 1", text));
  return seed;
}

MachineOptions options_of_environment() {
  return {parse_enum<Schedule>("schedule", setting("HALFSCOPE_PTX_SCHEDULE", "forward")),
          parse_seed(setting("HALFSCOPE_PTX_SEED", "0")),
          find_in_table("capability", setting("HALFSCOPE_PTX_CAPABILITY", "80"), capabilities).value};
}

StreamOrder order_of_environment() {
  return parse_enum<StreamOrder>("order of streams", setting("HALFSCOPE_PTX_STREAMS", "late"));
}

[[noreturn]] void end_process(std::string_view when, const std::exception& error) {
  fmt::print(stderr, "PTX interpreter, at the {} of the process: {}\n", when, error.what());
  std::fflush(nullptr);
  std::_Exit(1);
}

Runtime* make_runtime() {
  try {
    return new Runtime;
  } catch (const InvalidArgument& error) {
    end_process("start", error);
  }
}

/// "KIND NUMBER ENTRY"; none where it is empty.
std::optional<Mutant> mutant_of_environment() {
  const std::string name = setting("HALFSCOPE_PTX_MUTANT", "");
  return name.empty() ? std::nullopt : std::optional(mutant_called(name));
}

std::string list_of(const std::vector<ListedMutant>& mutants) {
  std::string list;
  for (const ListedMutant& m : mutants) list += fmt::format("{}\t{}\n", name_of(m.mutant), m.changed);
  return list;
}

std::vector<std::byte> packed(const Entry& entry, void** arguments) {
  std::vector<std::byte> bytes(entry.parameter_bytes);
  for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
    std::memcpy(bytes.data() + entry.parameters[i].offset, arguments[i], entry.parameters[i].bytes);
  }
  return bytes;
}

}  // namespace

Runtime& runtime() {
  // Never destroyed: thread-local objects free memory at the very end.
  static auto* const one = make_runtime();
  return *one;
}

Runtime::Runtime()
    : options_(options_of_environment()),
      machine_(options_),
      programs_(options_.capability, mutant_of_environment()),
      streams_(order_of_environment()),
      coverage_file_(setting("HALFSCOPE_PTX_COVERAGE", "")),
      mutants_file_(setting("HALFSCOPE_PTX_MUTANTS", "")) {
  (void)opcodes_called("");  // made before the end is registered, tables outlive it
  (void)std::atexit([] { runtime().finish(); });
}

cudaError_t Runtime::launch(const void* host_function, const LaunchConfiguration& launch, void** arguments) {
  FoundKernel kernel;
  if (const cudaError_t error = programs_.find(host_function, kernel)) return error;
  if (const cudaError_t error = check_launch(kernel, launch)) return error;
  if (launch.grid.y * launch.grid.z * launch.block.y * launch.block.z != 1) {
    throw InvalidArgument("launch: the interpreter knows one dimension of blocks and threads");
  }
  const std::size_t dynamic_bytes = programs_.dynamic_bytes(*kernel.entry, launch.shared_bytes);
  const auto run = [this, kernel, launch, dynamic_bytes, parameters = packed(*kernel.entry, arguments)] {
    machine_.launch(*kernel.module,
                    {kernel.entry->name, launch.grid.x, launch.block.x, dynamic_bytes, parameters});
  };
  return streams_.queue(launch.stream, {OperationKind::kernel, kernel.entry->name, run});
}

std::uint64_t Runtime::allocate(std::size_t bytes, MemorySource source) {
  const std::uint64_t address = memory().allocate(bytes);
  if (source == MemorySource::pool) pool_.insert(address);
  return address;
}

void Runtime::free(std::uint64_t address) {
  if (address == 0) return;
  memory().free(address);
  pool_.erase(address);
}

void Runtime::copy(void* to, const void* from, std::size_t bytes) {
  const bool to_device = is_device_address(address_of(to)), from_device = is_device_address(address_of(from));
  if (bytes == 0) return;
  if (to_device && from_device) return memory().copy(address_of(to), address_of(from), bytes);
  if (to_device) return memory().write(address_of(to), {static_cast<const std::byte*>(from), bytes});
  if (from_device) return memory().read_all({static_cast<std::byte*>(to), bytes}, address_of(from));
  std::memmove(to, from, bytes);
}

void Runtime::fill(void* to, int value, std::size_t bytes) {
  if (bytes != 0) memory().fill(address_of(to), static_cast<std::byte>(value), bytes);
}

void Runtime::write_coverage() {
  if (coverage_file_.empty()) return;
  append_line(coverage_file_, coverage_line(machine_.coverage(), programs_.entries()));
}

void Runtime::write_mutants() {
  if (!mutants_file_.empty()) append_line(mutants_file_, list_of(programs_.mutants()));
  if (!programs_.is_mutant_used()) throw RuntimeFailure("no code with the mutant was used");
}

void Runtime::finish() noexcept {
  const std::scoped_lock lock(mutex_);
  try {
    streams_.run_all();
    write_coverage();
    write_mutants();
  } catch (const std::exception& error) {
    end_process("end", error);
  }
}

}  // namespace halfscope::ptx
