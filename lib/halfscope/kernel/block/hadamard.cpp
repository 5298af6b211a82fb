// The random Hadamard transform of groups of 16.
#include <fmt/format.h>

#include <cstring>

#include <halfscope/kernel/block/quantise.hpp>
#include <halfscope/kernel/detail/quads.hpp>

namespace halfscope {
namespace {

constexpr std::size_t group = hadamard_signs.size();

void check_groups(std::span<const float> values) {
  if (values.size() % group == 0) return;
  throw InvalidArgument(fmt::format("hadamard_16: {} values are no groups of {}", values.size(), group));
}

constexpr std::size_t quads = group / 4;

/// Sums and differences of numbers that are 1 and 2 apart.
Quad in_pairs(Quad x) {
  x = __builtin_shufflevector(x, x, 1, 0, 3, 2) + x * Quad{1, -1, 1, -1};
  return __builtin_shufflevector(x, x, 2, 3, 0, 1) + x * Quad{1, 1, -1, -1};
}

/// x H / 4 of a group: sums and differences of pairs that are 1, 2, 4 and 8 apart.
void transform(Quad (&x)[quads]) {
  for (Quad& quad : x) quad = in_pairs(quad);
  const Quad sums[] = {x[0] + x[1], x[2] + x[3]}, differences[] = {x[0] - x[1], x[2] - x[3]};
  x[0] = (sums[0] + sums[1]) * 0.25f;
  x[1] = (differences[0] + differences[1]) * 0.25f;
  x[2] = (sums[0] - sums[1]) * 0.25f;
  x[3] = (differences[0] - differences[1]) * 0.25f;
}

void turn_signs(Quad (&x)[quads]) {
  Quad signs[quads];
  std::memcpy(signs, hadamard_signs.data(), sizeof signs);
  for (std::size_t i = 0; i < quads; ++i) x[i] *= signs[i];
}

/// Calls body(group) for each group of the values.
template <typename Body>
void for_each_group(std::span<float> values, const Body& body) {
  check_groups(values);
  for (std::size_t i = 0; i < values.size(); i += group) {
    Quad x[quads];
    std::memcpy(x, values.data() + i, sizeof x);
    body(x);
    std::memcpy(values.data() + i, x, sizeof x);
  }
}

}  // namespace

void hadamard_16(std::span<float> values) {
  for_each_group(values, [](Quad(&x)[quads]) {
    turn_signs(x);
    transform(x);
  });
}

void inverse_hadamard_16(std::span<float> values) {
  for_each_group(values, [](Quad(&x)[quads]) {
    transform(x);
    turn_signs(x);
  });
}

}  // namespace halfscope
