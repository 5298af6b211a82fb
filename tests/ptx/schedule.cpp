// Orders in which blocks, warps and threads are run.
#include "tests/ptx/schedule.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace halfscope::ptx {

template <typename Order>
void Scheduler::put_in_order(Order& order) {
  std::iota(order.begin(), order.end(), typename Order::value_type{0});
  if (schedule_ == Schedule::backward) std::reverse(order.begin(), order.end());
  if (schedule_ != Schedule::shuffled) return;
  // std::shuffle gives another order with another standard library.
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random_() % left]);
}

void Scheduler::arrange(std::vector<std::uint32_t>& order) {
  put_in_order(order);
}

void Scheduler::arrange(LaneSchedule& lanes) {
  put_in_order(lanes.order);
  lanes.groups = {all_lanes};
  if (schedule_ == Schedule::backward) lanes.groups = {0xFFFF'0000, 0x0000'FFFF};
  if (schedule_ != Schedule::shuffled) return;
  const auto first = static_cast<Lanes>(random_()), second = static_cast<Lanes>(random_());
  lanes.groups = {first, second & ~first, ~(first | second)};
}

}  // namespace halfscope::ptx
