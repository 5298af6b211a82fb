// Numbers that kernels leave on the device, and that come to the host together.
#pragma once

#include <tuple>
#include <vector>

#include <halfscope/device/memory.hpp>

namespace halfscope {

/// The place of `count` numbers in a Readback.
template <typename T>
struct ReadbackSlot {
  std::size_t block = 0;
  std::size_t offset = 0;  ///< bytes
  std::size_t count = 0;
};

/// Slots in memory of the device that are read in one copy. A step takes the slots that the one before it
/// took: where they did not fit into one block of memory, the next ones do.
class Readback {
 public:
  /// Zeros on the active device, until the next `read`.
  template <typename T>
  [[nodiscard]] ReadbackSlot<T> take(std::size_t count) {
    static_assert(alignof(T) <= alignment);
    ReadbackSlot<T> slot{0, 0, count};
    std::tie(slot.block, slot.offset) = take_bytes(count * sizeof(T));
    return slot;
  }
  /// Where kernels write what the slot is to hold; only before `read`.
  template <typename T>
  [[nodiscard]] std::span<T> device_values(const ReadbackSlot<T>& slot) {
    return {reinterpret_cast<T*>(blocks_[slot.block].memory.data() + slot.offset), slot.count};
  }

  /// Waits for the device and copies all slots; those taken from now on are of the next read. Without slots
  /// it does nothing.
  void read();
  /// Values that a slot held at the last `read`, which came after its `take`.
  template <typename T>
  [[nodiscard]] std::span<const T> values(const ReadbackSlot<T>& slot) const {
    return {reinterpret_cast<const T*>(read_[slot.block].data() + slot.offset), slot.count};
  }

  /// Leaves the slots unread.
  void forget();

 private:
  static constexpr std::size_t alignment = 16;

  struct Block {
    Memory<std::byte> memory;
    std::size_t used = 0;
  };

  [[nodiscard]] std::pair<std::size_t, std::size_t> take_bytes(std::size_t bytes);

  std::vector<Block> blocks_{};
  std::vector<std::vector<std::byte>> read_{};
};

}  // namespace halfscope
