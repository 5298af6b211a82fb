// Orders in which blocks, and threads between two synchronisations, are run.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include <halfscope/core/names.hpp>

namespace halfscope::ptx {

enum class Schedule : std::uint8_t { forward, backward, shuffled };

/// Orders of one launch; a shuffled one is another at each call, by `seed`.
class Scheduler {
 public:
  Scheduler(Schedule schedule, std::uint64_t seed) : schedule_(schedule), random_(seed) {}

  /// Puts the numbers below the size of `order` into it.
  void arrange(std::vector<std::uint32_t>& order);

 private:
  Schedule schedule_;
  std::mt19937_64 random_;
};

}  // namespace halfscope::ptx

template <>
inline constexpr std::array<std::string_view, 3> halfscope::enum_names<halfscope::ptx::Schedule>{
    "forward", "backward", "shuffled"};
