// An all-reduce by its definition: every rank a process with a buffer of its own, messages between them, adds
// in double arithmetic. It shares nothing with the library's plans.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <halfscope/format/quantizer.hpp>

#include "tests/reference/rounding.hpp"

namespace halfscope::reference {

using Buffer = std::vector<double>;

/// Ranks, each with its buffer; `sum` is the format that every add is rounded to.
struct Ranks {
  std::vector<Buffer> buffers;
  FloatFormat sum;
  std::int64_t stagnated = 0;

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(buffers.size()); }
  double add(double a, double b) {
    const double next = round_to_float(a + b, {.format = sum});
    if (a != 0 && b != 0 && std::isfinite(next) && (next == a || next == b)) ++stagnated;
    return next;
  }
};

/// The ring, step by step: at each of N - 1 steps every rank receives a chunk's partial sum from the rank
/// before it and adds its own; after that, rank c has the sum of chunk c. Chunks have `chunk` elements.
inline Buffer nccl_ring(Ranks ranks, std::size_t chunk, std::int64_t* stagnated = nullptr) {
  const std::int64_t n = ranks.count();
  const std::size_t elements = ranks.buffers[0].size();
  const auto mod = [n](std::int64_t r) { return static_cast<std::size_t>(((r % n) + n) % n); };
  Buffer result(elements);
  for (std::size_t loop = 0; loop < elements; loop += chunk * static_cast<std::size_t>(n)) {
    // sent[r] is the chunk that rank r sends on: at first its own part of chunk r - 1.
    std::vector<Buffer> partial = ranks.buffers;
    for (std::int64_t step = 1; step < n; ++step) {
      const std::vector<Buffer> before = partial;
      for (std::int64_t rank = 0; rank < n; ++rank) {
        const std::size_t c = mod(rank - 1 - step);
        for (std::size_t e = loop + c * chunk; e < std::min(elements, loop + (c + 1) * chunk); ++e)
          partial[mod(rank)][e] = ranks.add(before[mod(rank - 1)][e], ranks.buffers[mod(rank)][e]);
      }
    }
    for (std::int64_t c = 0; c < n; ++c) {
      const std::size_t first = loop + static_cast<std::size_t>(c) * chunk;
      for (std::size_t e = first; e < std::min(elements, first + chunk); ++e) result[e] = partial[mod(c)][e];
    }
  }
  if (stagnated != nullptr) *stagnated = ranks.stagnated;
  return result;
}

/// The parent of a position in NCCL's binary tree of n positions; -1 of the root. The lowest set bit goes up
/// by one place, or, beyond the end, away.
inline std::int64_t tree_parent(std::int64_t position, std::int64_t n) {
  if (position == 0) return -1;
  std::int64_t bit = 1;
  while ((position & bit) == 0) bit *= 2;
  const std::int64_t without = position - bit;
  return (without | (bit * 2)) < n ? without | (bit * 2) : without;
}

/// Element e up the tree whose position p is rank rank_at(p): a rank adds to its own number the sums of its
/// children, the one of the smaller position first.
inline double up_the_tree(Ranks& ranks, std::size_t e, std::int64_t position,
                          const std::function<std::int64_t(std::int64_t)>& rank_at) {
  double sum = ranks.buffers[static_cast<std::size_t>(rank_at(position))][e];
  for (std::int64_t child = 0; child < ranks.count(); ++child) {
    if (tree_parent(child, ranks.count()) == position)
      sum = ranks.add(sum, up_the_tree(ranks, e, child, rank_at));
  }
  return sum;
}

/// Elements below `half` by the first tree, the others by the second.
inline Buffer nccl_tree(Ranks ranks, std::size_t half, std::int64_t* stagnated = nullptr) {
  const std::int64_t n = ranks.count();
  Buffer result;
  for (std::size_t e = 0; e < ranks.buffers[0].size(); ++e) {
    const auto rank_at = [&](std::int64_t p) { return e < half ? p : n % 2 == 0 ? n - 1 - p : (p + 1) % n; };
    result.push_back(up_the_tree(ranks, e, 0, rank_at));
  }
  if (stagnated != nullptr) *stagnated = ranks.stagnated;
  return result;
}

/// Recursive doubling as its processes run it: partners exchange and both add.
inline Buffer butterfly(Ranks ranks) {
  std::int64_t power = 1;
  while (2 * power <= ranks.count()) power *= 2;
  const std::int64_t extra = ranks.count() - power;
  const auto add_all = [&](const Buffer& a, const Buffer& b) {
    Buffer sum;
    for (std::size_t e = 0; e < a.size(); ++e) sum.push_back(ranks.add(a[e], b[e]));
    return sum;
  };
  std::vector<Buffer> active;
  for (std::int64_t r = 0; r < 2 * extra; r += 2)
    active.push_back(
        add_all(ranks.buffers[static_cast<std::size_t>(r)], ranks.buffers[static_cast<std::size_t>(r) + 1]));
  for (std::int64_t r = 2 * extra; r < ranks.count(); ++r)
    active.push_back(ranks.buffers[static_cast<std::size_t>(r)]);
  for (std::size_t distance = 1; distance < active.size(); distance *= 2) {
    const std::vector<Buffer> before = active;
    for (std::size_t r = 0; r < active.size(); ++r) active[r] = add_all(before[r], before[r ^ distance]);
  }
  return active[0];
}

/// Ranks one after the other from `first`, by `step`.
inline double in_turn(Ranks& ranks, std::size_t e, std::int64_t first, std::int64_t step) {
  const std::int64_t n = ranks.count();
  const auto at = [&](std::int64_t k) {
    return ranks.buffers[static_cast<std::size_t>((((first + step * k) % n) + n) % n)][e];
  };
  double sum = at(0);
  for (std::int64_t k = 1; k < n; ++k) sum = ranks.add(sum, at(k));
  return sum;
}

}  // namespace halfscope::reference
