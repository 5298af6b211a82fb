// Marks of blocks with the instruction set in use, and the magnitudes at which they begin.
#include <halfscope/kernel/block/detail/marks_simd.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/format/bits.hpp>

namespace halfscope {
namespace {

/// The first magnitude from 1 on, at most infinity, that holds; all above it do. A guess saves time.
template <typename Holds>
std::uint32_t first_magnitude(float guess, const Holds& holds) {
  const auto does = [&](std::uint32_t magnitude) { return magnitude >= infinity_bits || holds(magnitude); };
  std::uint32_t at = std::clamp(magnitude_bits(guess), 1u, infinity_bits);
  for (int tries = 0; tries < 4; ++tries) {
    if (!does(at)) {
      ++at;
    } else if (at == 1 || !does(at - 1)) {
      return at;
    } else {
      --at;
    }
  }
  std::uint32_t first = 1, last = infinity_bits;
  while (first < last) {
    const std::uint32_t middle = first + (last - first) / 2;
    if (does(middle)) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return last;
}

}  // namespace

KindsOfBlocks mark_blocks(const BlocksToMark& blocks, const MarkLimits& limits,
                          std::span<std::uint32_t> marks) {
  return dispatch_isa([&]<Isa isa>() { return mark_blocks_isa<isa>(blocks, limits, marks.data()); });
}

bool mark_ordinary_blocks(const BlocksToMark& blocks, const MarkLimits& limits,
                          std::span<std::uint32_t> marks, KindsOfBlocks& kinds) {
  return dispatch_isa([&]<Isa isa>() { return mark_ordinary_isa<isa>(blocks, limits, marks.data(), kinds); });
}

std::uint32_t first_marked(const BlockScale& scale, const MarkLimits& limits) {
  const bool multiplies = limits.step == ScaleStep::multiply;
  const float factor = scale.factor, value = scale.value, tensor = limits.tensor_scale;
  const bool is_special = !std::isfinite(factor) || (!multiplies && factor == 0) ||
                          !std::isfinite(limits.largest * value * tensor) ||
                          limits.elements.normal * value * tensor == 0;
  if (is_special) return 1;
  const float limit = std::min(limits.elements.largest, limits.end);
  return first_magnitude(multiplies ? limit / factor : limit * factor, [&](std::uint32_t magnitude) {
    const float x = from_bits(magnitude), largest = multiplies ? x * factor : x / factor;
    return largest > limits.elements.largest || largest >= limits.end;
  });
}

}  // namespace halfscope
