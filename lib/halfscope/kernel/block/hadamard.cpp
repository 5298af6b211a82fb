// The random Hadamard transform of groups of 16.
#include <fmt/format.h>

#include <halfscope/kernel/block/quantise.hpp>

namespace halfscope {
namespace {

constexpr std::size_t group = hadamard_signs.size();

void check_groups(std::span<const float> values) {
  if (values.size() % group == 0) return;
  throw InvalidArgument(fmt::format("hadamard_16: {} values are no groups of {}", values.size(), group));
}

/// x H / 4 of a group: sums and differences of pairs that are 1, 2, 4 and 8 apart.
void transform(float* x) {
  for (std::size_t distance = 1; distance < group; distance *= 2) {
    for (std::size_t i = 0; i < group; ++i) {
      if ((i & distance) != 0) continue;
      const float low = x[i], high = x[i + distance];
      x[i] = low + high;
      x[i + distance] = low - high;
    }
  }
  for (std::size_t i = 0; i < group; ++i) x[i] /= 4;
}

void turn_signs(float* x) {
  for (std::size_t i = 0; i < group; ++i) x[i] *= hadamard_signs[i];
}

}  // namespace

void hadamard_16(std::span<float> values) {
  check_groups(values);
  for (std::size_t i = 0; i < values.size(); i += group) {
    turn_signs(values.data() + i);
    transform(values.data() + i);
  }
}

void inverse_hadamard_16(std::span<float> values) {
  check_groups(values);
  for (std::size_t i = 0; i < values.size(); i += group) {
    transform(values.data() + i);
    turn_signs(values.data() + i);
  }
}

}  // namespace halfscope
