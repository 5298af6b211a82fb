// Orders in which blocks and threads are run.
#include "tests/ptx/schedule.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace halfscope::ptx {

void Scheduler::arrange(std::vector<std::uint32_t>& order) {
  std::iota(order.begin(), order.end(), 0u);
  if (schedule_ == Schedule::backward) std::reverse(order.begin(), order.end());
  if (schedule_ != Schedule::shuffled) return;
  // std::shuffle gives another order with another standard library.
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random_() % left]);
}

}  // namespace halfscope::ptx
