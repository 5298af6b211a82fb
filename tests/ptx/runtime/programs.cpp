// Modules and kernels that a program registers; limits are those of CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability".
#include "tests/ptx/runtime/programs.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace halfscope::ptx {
namespace {

/// Shared memory of a block: a bound of static memory, and of dynamic memory unless its kernel asks for more.
constexpr std::size_t usual_shared_bytes = std::size_t{48} << 10;

bool is_within(const dim3& extent, const dim3& most) {
  const auto fits = [](unsigned value, unsigned limit) { return value >= 1 && value <= limit; };
  return fits(extent.x, most.x) && fits(extent.y, most.y) && fits(extent.z, most.z);
}

}  // namespace

Registered* Programs::add(const void* fat_binary) {
  registered_.push_back(std::make_unique<Registered>(Registered{embedded_texts(fat_binary), {}}));
  return registered_.back().get();
}

void Programs::add_kernel(Registered* registered, const void* host_function, std::string name) {
  kernels_[host_function] = {registered, std::move(name), {}};
}

/// Text of the newest target that the device runs; null without any.
const EmbeddedText* Programs::text_of(const Registered& registered) const {
  const EmbeddedText* best = nullptr;
  for (const EmbeddedText& text : registered.texts) {
    const bool runs = text.target <= 10 * capability_.major + capability_.minor;
    if (runs && (best == nullptr || text.target > best->target)) best = &text;
  }
  return best;
}

/// Null where the device runs none of the texts.
const Module* Programs::module_of(Registered& registered) {
  if (registered.module) return &*registered.module;
  const EmbeddedText* embedded = text_of(registered);
  if (embedded == nullptr) return nullptr;
  if (mutant_ && has_entry(embedded->text, mutant_->entry)) {
    registered.module = parse(mutated(embedded->text, *mutant_));
    mutant_used_ = true;
  } else {
    registered.module = parse(embedded->text);
  }
  return &*registered.module;
}

cudaError_t Programs::find(const void* host_function, FoundKernel& kernel) {
  const auto known = kernels_.find(host_function);
  if (known == kernels_.end()) return cudaErrorInvalidDeviceFunction;
  kernel.module = module_of(*known->second.registered);
  if (kernel.module == nullptr) return cudaErrorNoKernelImageForDevice;
  kernel.entry = &kernel.module->entry(known->second.name);
  if (kernel.entry->shared_bytes > usual_shared_bytes) return cudaErrorInvalidPtx;
  kernel.most_dynamic_bytes =
      known->second.most_dynamic_bytes.value_or(usual_shared_bytes - kernel.entry->shared_bytes);
  return cudaSuccess;
}

cudaError_t Programs::set_most_dynamic_bytes(const void* host_function, int bytes) {
  FoundKernel kernel;
  if (const cudaError_t error = find(host_function, kernel)) return error;
  const std::size_t most = most_shared_bytes(capability_) - kernel.entry->shared_bytes;
  if (bytes < 0 || static_cast<std::size_t>(bytes) > most) return cudaErrorInvalidValue;
  kernels_.at(host_function).most_dynamic_bytes = static_cast<std::size_t>(bytes);
  return cudaSuccess;
}

std::vector<const Entry*> Programs::entries() {
  std::vector<const Entry*> all;
  for (const auto& registered : registered_) {
    const Module* module = module_of(*registered);
    if (module == nullptr) continue;
    for (const Entry& entry : module->entries) all.push_back(&entry);
  }
  return all;
}

std::vector<ListedMutant> Programs::mutants() const {
  std::vector<ListedMutant> all;
  for (const auto& registered : registered_) {
    const EmbeddedText* embedded = text_of(*registered);
    if (embedded == nullptr) continue;
    std::vector<ListedMutant> of_text = mutants_of(embedded->text);
    std::move(of_text.begin(), of_text.end(), std::back_inserter(all));
  }
  return all;
}

std::size_t Programs::dynamic_bytes(const Entry& entry, std::size_t bytes) const {
  return mutant_ && mutant_->entry == entry.name ? dynamic_bytes_with(*mutant_, bytes) : bytes;
}

cudaError_t check_launch(const FoundKernel& kernel, const LaunchConfiguration& launch) {
  const dim3 most_blocks{0x7FFF'FFFF, 65535, 65535}, most_threads{1024, 1024, 64};
  const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  if (!is_within(launch.grid, most_blocks) || !is_within(launch.block, most_threads))
    return cudaErrorInvalidConfiguration;
  if (threads > kernel.entry->max_threads) return cudaErrorInvalidConfiguration;
  return launch.shared_bytes <= kernel.most_dynamic_bytes ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace halfscope::ptx
