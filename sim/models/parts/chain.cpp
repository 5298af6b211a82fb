// Cuts chains of blocks into segments.
#include "sim/models/parts/chain.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace halfscope {
namespace {

/// Consecutive blocks; each is in the part that its middle falls into. None is empty.
std::vector<std::vector<Segment>> cut(const std::vector<ChainBlock>& blocks, std::int64_t segments) {
  const double whole = std::accumulate(blocks.begin(), blocks.end(), 0.0,
                                       [](double sum, const ChainBlock& block) { return sum + block.size; });
  const double count = std::clamp(static_cast<double>(segments), 1.0, static_cast<double>(blocks.size()));
  std::vector<std::vector<Segment>> parts;
  double before = 0, current = -1;
  for (const ChainBlock& block : blocks) {
    const double part = std::floor((before + block.size / 2) / whole * count);
    if (part != current) parts.emplace_back();
    parts.back().push_back(block.run);
    before += block.size;
    current = part;
  }
  return parts;
}

}  // namespace

TensorRef chain(Tape& tape, TensorRef x, const std::vector<ChainBlock>& blocks) {
  const std::vector<std::vector<Segment>> parts = cut(blocks, tape.options().segments);
  for (const std::vector<Segment>& part : parts) {
    const auto run = [part](Tape& on, TensorRef in) {
      for (const Segment& block : part) in = block(on, in);
      return in;
    };
    x = &part == &parts.back() ? run(tape, x) : tape.checkpoint(x, run);
  }
  return x;
}

}  // namespace halfscope
