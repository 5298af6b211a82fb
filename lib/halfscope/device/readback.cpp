// Blocks of slots: copied, zeroed and joined.
#include <halfscope/device/readback.hpp>

#include <algorithm>

namespace halfscope {
namespace {

constexpr std::size_t smallest_block = std::size_t{1} << 16;

}  // namespace

std::pair<std::size_t, std::size_t> Readback::take_bytes(std::size_t bytes) {
  const std::size_t size = (bytes + alignment - 1) / alignment * alignment;
  if (blocks_.empty() || blocks_.back().memory.size() - blocks_.back().used < size) {
    const std::size_t grown = blocks_.empty() ? smallest_block : 2 * blocks_.back().memory.size();
    blocks_.push_back({Memory<std::byte>::zeros(std::max(grown, size)), 0});
  }
  Block& block = blocks_.back();
  const std::size_t offset = block.used;
  block.used += size;
  return {blocks_.size() - 1, offset};
}

void Readback::read() {
  read_.resize(blocks_.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    read_[i].resize(block.used);
    detail::copy_memory(read_[i].data(), Device::cpu, block.memory.data(), block.memory.device(), block.used);
  }
  forget();
}

void Readback::forget() {
  if (blocks_.size() > 1) {
    std::size_t all = 0;
    for (const Block& block : blocks_) all += block.memory.size();
    const Device device = blocks_.front().memory.device();
    blocks_.clear();
    blocks_.push_back({Memory<std::byte>::zeros(all, device), 0});
  }
  for (Block& block : blocks_) {
    detail::zero_memory(block.memory.data(), block.used, block.memory.device());
    block.used = 0;
  }
}

}  // namespace halfscope
