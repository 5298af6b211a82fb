// Recursive doubling over the largest power of two of ranks, once the ranks beyond it are folded in.
#include <halfscope/arithmetic/all_reduce/detail/sequences.hpp>

#include <bit>

namespace halfscope {
namespace {

/// `extra` ranks are beyond the power of two.
struct Folded {
  std::int64_t extra;

  [[nodiscard]] bool is_pair(std::int64_t i) const { return i < extra; }
  [[nodiscard]] std::int32_t rank(std::int64_t i) const {
    return static_cast<std::int32_t>(is_pair(i) ? 2 * i : i + extra);
  }
};

/// The sum of the folded ranks [first, first + count), of a power of two of them.
void append_half_sums(const Folded& folded, std::int64_t first, std::int64_t count, AddSequence& steps) {
  if (count == 1) {
    steps.push_back({AddStep::Kind::begin, folded.rank(first)});
    if (folded.is_pair(first)) steps.push_back({AddStep::Kind::add, folded.rank(first) + 1});
    return;
  }
  const std::int64_t half = count / 2;
  append_half_sums(folded, first, half, steps);
  if (half == 1 && !folded.is_pair(first + 1)) {
    steps.push_back({AddStep::Kind::add, folded.rank(first + 1)});
    return;
  }
  append_half_sums(folded, first + half, half, steps);
  steps.push_back({AddStep::Kind::join, 0});
}

}  // namespace

AddPlan plan_butterfly(const AllReduceBuffer& buffer) {
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(buffer.ranks)));
  AddSequence steps;
  append_half_sums({buffer.ranks - power}, 0, power, steps);
  return one_run(buffer, std::move(steps));
}

}  // namespace halfscope
