// The device behind the stand-in for CUDA's runtime; HALFSCOPE_PTX_... in the environment choose its
// capability and its schedule.
#include "tests/ptx/runtime/runtime.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

std::string setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

MachineOptions options_of_environment() {
  const int capability = std::stoi(setting("HALFSCOPE_PTX_CAPABILITY", "80"));
  return {parse_enum<Schedule>("schedule", setting("HALFSCOPE_PTX_SCHEDULE", "forward")),
          std::stoull(setting("HALFSCOPE_PTX_SEED", "0")),
          {capability / 10, capability % 10}};
}

std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
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
  static auto* const one = new Runtime;  // never destroyed: thread-local objects free memory at the very end
  return *one;
}

Runtime::Runtime() : options_(options_of_environment()), machine_(options_) {}

Registered* Runtime::add(const void* fat_binary) {
  const std::scoped_lock lock(mutex_);
  registered_.push_back(std::make_unique<Registered>(Registered{embedded_texts(fat_binary), {}}));
  return registered_.back().get();
}

void Runtime::add_kernel(Registered* registered, const void* host_function, std::string name) {
  const std::scoped_lock lock(mutex_);
  kernels_[host_function] = {registered, std::move(name)};
}

/// The text of the newest target that the device runs.
const Module& Runtime::module_of(Registered& registered) const {
  if (registered.module) return *registered.module;
  const EmbeddedText* best = nullptr;
  for (const EmbeddedText& text : registered.texts) {
    const bool runs = text.target <= 10 * options_.capability.major + options_.capability.minor;
    if (runs && (best == nullptr || text.target > best->target)) best = &text;
  }
  if (best == nullptr) throw InvalidArgument("the program has no PTX for the device's capability");
  registered.module = parse(best->text);
  return *registered.module;
}

void Runtime::launch(const void* host_function, const LaunchShape& shape, void** arguments,
                     const void* stream) {
  const std::scoped_lock lock(mutex_);
  const Kernel& kernel = kernels_.at(host_function);
  const Module& module = module_of(*kernel.registered);
  std::vector<std::byte> parameters = packed(module.entry(kernel.name), arguments);
  enqueue(stream, [this, &kernel, &module, shape, parameters = std::move(parameters)] {
    machine_.launch(module, {kernel.name, shape.blocks, shape.threads, shape.shared_bytes, parameters});
  });
}

void Runtime::enqueue(const void* stream, std::function<void()> operation) {
  const std::scoped_lock lock(mutex_);
  const auto captured = captured_.find(stream);
  if (captured == captured_.end()) return operation();
  captured->second.push_back(std::move(operation));
}

void Runtime::begin_capture(const void* stream) {
  const std::scoped_lock lock(mutex_);
  captured_[stream] = {};
}

std::optional<Recording> Runtime::end_capture(const void* stream) {
  const std::scoped_lock lock(mutex_);
  auto captured = captured_.extract(stream);
  if (captured.empty()) return std::nullopt;
  return std::move(captured.mapped());
}

std::uint64_t Runtime::allocate(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  return machine_.memory().allocate(bytes);
}

void Runtime::free(std::uint64_t address) {
  const std::scoped_lock lock(mutex_);
  if (address != 0) machine_.memory().free(address);
}

void Runtime::copy(void* to, const void* from, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  GlobalMemory& memory = machine_.memory();
  const bool to_device = is_device_address(address_of(to)), from_device = is_device_address(address_of(from));
  if (bytes == 0) return;
  if (to_device && from_device) return memory.copy(address_of(to), address_of(from), bytes);
  if (to_device) return memory.write(address_of(to), {static_cast<const std::byte*>(from), bytes});
  if (from_device) return memory.read_all({static_cast<std::byte*>(to), bytes}, address_of(from));
  std::memmove(to, from, bytes);
}

void Runtime::fill(void* to, int value, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (bytes != 0) machine_.memory().fill(address_of(to), static_cast<std::byte>(value), bytes);
}

}  // namespace halfscope::ptx
