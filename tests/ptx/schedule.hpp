// Orders in which blocks and warps are run, and the threads of a warp between two synchronisations.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include <halfscope/core/names.hpp>

#include "tests/ptx/fragments.hpp"

namespace halfscope::ptx {

/// A bit for each thread of a warp.
using Lanes = std::uint32_t;
inline constexpr Lanes all_lanes = 0xFFFF'FFFF;

/// Forward: the threads of a warp together. Backward: the upper half of them, then the lower one. Shuffled:
/// in three groups at random. Since compute capability 7.0 a program may count on none of these.
enum class Schedule : std::uint8_t { forward, backward, shuffled };

/// Lanes in the order of their accesses to memory within an instruction.
using LaneOrder = std::array<std::uint8_t, warp_threads>;

struct LaneSchedule {
  LaneOrder order{};
  /// Each runs alone to its next synchronisation.
  std::vector<Lanes> groups;
};

/// Orders of one launch; a shuffled one is another at each call, by `seed`.
class Scheduler {
 public:
  Scheduler(Schedule schedule, std::uint64_t seed) : schedule_(schedule), random_(seed) {}

  /// Puts the numbers below the size of `order` into it.
  void arrange(std::vector<std::uint32_t>& order);
  void arrange(LaneSchedule& lanes);

 private:
  template <typename Order>
  void put_in_order(Order& order);

  Schedule schedule_;
  std::mt19937_64 random_;
};

}  // namespace halfscope::ptx

template <>
inline constexpr std::array<std::string_view, 3> halfscope::enum_names<halfscope::ptx::Schedule>{
    "forward", "backward", "shuffled"};
