// Sums of products for the cosine between an array and a rounded copy of it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace halfscope {

/// Sums over the elements x of an array and q of another, in double. Element i is added to lane i % 16, so
/// that the sums do not depend on the pieces that the arrays come in nor on the instruction set.
struct CosineSums {
  static constexpr std::size_t lanes = 16;

  std::array<double, lanes> xx{}, xq{}, qq{};
  std::uint32_t next_lane = 0;

  friend bool operator==(const CosineSums&, const CosineSums&) = default;
};

/// Adds the elements of `x` and of `q`, on one thread. Throws InvalidArgument where they differ in size.
void add_cosine_sums(std::span<const float> x, std::span<const float> q, CosineSums& sums);

}  // namespace halfscope
