// NCCL's double binary tree: which ranks a rank receives sums from, and in which order it adds them.
#include <halfscope/arithmetic/all_reduce/detail/sequences.hpp>

#include <algorithm>
#include <bit>
#include <functional>

namespace halfscope {
namespace {

/// Positions in a tree of `size`, rooted at 0: the lowest set bit of a position is its height, so that odd
/// ones are leaves and even ones lie between their children.
struct BinaryTree {
  std::int64_t size;

  /// The children of `position` in the order in which it adds them.
  [[nodiscard]] std::vector<std::int64_t> children(std::int64_t position) const {
    const auto all = static_cast<std::uint64_t>(size);
    if (position == 0) {
      if (size == 1) return {};
      return {static_cast<std::int64_t>(std::bit_floor(all - 1))};
    }
    std::int64_t reach = (position & -position) / 2;
    if (reach == 0) return {};
    std::vector<std::int64_t> found{position - reach};
    while (reach > 0 && position + reach >= size) reach /= 2;
    if (reach > 0) found.push_back(position + reach);
    return found;
  }
};

using RankAt = std::function<std::int64_t(std::int64_t position)>;

void append_sum(const BinaryTree& tree, std::int64_t position, const RankAt& rank_at, AddSequence& steps) {
  steps.push_back({AddStep::Kind::begin, static_cast<std::int32_t>(rank_at(position))});
  for (const std::int64_t child : tree.children(position)) {
    if (tree.children(child).empty()) {
      steps.push_back({AddStep::Kind::add, static_cast<std::int32_t>(rank_at(child))});
      continue;
    }
    append_sum(tree, child, rank_at, steps);
    steps.push_back({AddStep::Kind::join, 0});
  }
}

}  // namespace

AddPlan plan_nccl_tree(const AllReduceBuffer& buffer) {
  const std::int64_t n = buffer.ranks;
  const RankAt mirrored = [n](std::int64_t position) { return n - 1 - position; };
  const RankAt shifted = [n](std::int64_t position) { return (position + 1) % n; };
  AddPlan plan;
  plan.sequences.resize(2);
  append_sum(
      {n}, 0, [](std::int64_t position) { return position; }, plan.sequences[0]);
  append_sum({n}, 0, n % 2 == 0 ? mirrored : shifted, plan.sequences[1]);
  const std::int64_t grain = 16 / buffer.element_bytes;
  const std::int64_t half =
      std::min(buffer.elements, ((buffer.elements + 1) / 2 + grain - 1) / grain * grain);
  if (half > 0) plan.runs.push_back({.first = 0, .count = half});
  if (half < buffer.elements)
    plan.runs.push_back({.first = half, .count = buffer.elements - half, .sequence = 1});
  return plan;
}

}  // namespace halfscope
