// A device that interprets PTX: checks of a launch, then its blocks one after the other.
#include "tests/ptx/machine.hpp"

#include <fmt/format.h>

#include "tests/ptx/block.hpp"

namespace halfscope::ptx {
namespace {

void require(bool right, std::string_view entry, const std::string& message) {
  if (!right) throw InvalidArgument(fmt::format("launch of {}: {}", entry, message));
}

}  // namespace

std::size_t most_shared_bytes(const ComputeCapability& capability) {
  constexpr std::size_t kib = 1024;
  if (capability.major < 8) return 64 * kib;
  if (capability.major >= 9) return 227 * kib;
  return (capability.minor == 0 ? 163 : 99) * kib;
}

std::uint64_t Coverage::executed(std::string_view name) const {
  std::uint64_t sum = 0;
  for (const std::uint32_t number : opcodes_called(name)) sum += instructions[number];
  return sum;
}

void Machine::check(const Module& module, const Entry& entry, const Launch& launch) const {
  const int capability = options_.capability.major * 10 + options_.capability.minor;
  const std::size_t shared = entry.shared_bytes + launch.dynamic_shared_bytes;
  const std::size_t most_shared = most_shared_bytes(options_.capability);
  require(module.target <= capability, entry.name,
          fmt::format("its code is for sm_{}, the device has {}", module.target, capability));
  require(launch.blocks > 0, entry.name, "it has no blocks");
  require(launch.threads > 0 && launch.threads <= entry.max_threads, entry.name,
          fmt::format("{} threads per block; 1 to {} are allowed", launch.threads, entry.max_threads));
  require(launch.parameters.size() == entry.parameter_bytes, entry.name,
          fmt::format("{} bytes of parameters; it has {}", launch.parameters.size(), entry.parameter_bytes));
  require(shared <= most_shared, entry.name,
          fmt::format("{} bytes of shared memory; the device has {}", shared, most_shared));
}

void Machine::launch(const Module& module, const Launch& launch) {
  const Entry& entry = module.entry(launch.entry);
  check(module, entry, launch);
  ++coverage_.launches[entry.name];
  SharedMemory shared(entry.shared_bytes + launch.dynamic_shared_bytes);
  ByteSpace parameters("the parameters", entry.parameter_bytes);
  parameters.write(0, launch.parameters);
  Environment environment{memory_, shared, parameters, options_.capability};
  Program program(entry, coverage_.instructions);
  Block block(program, environment, launch.threads);
  Scheduler scheduler(options_.schedule, options_.seed);
  std::vector<std::uint32_t> order(launch.blocks);
  scheduler.arrange(order);
  for (const std::uint32_t number : order) block.run(number, launch.blocks, scheduler);
}

}  // namespace halfscope::ptx
