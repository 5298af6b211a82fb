// How far an array is from the one that it should be.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace halfscope {

/// Sums over two arrays. Errors, sizes and products are those of the elements whose expected number is
/// finite; they are added in double, in an order that depends neither on the threads nor on the instruction
/// set.
struct DistanceSums {
  double squared_error = 0;  // found - expected
  double squared_size = 0;   // expected
  double squared_found = 0;  // found
  double product = 0;        // found * expected
  double largest_error = 0;  // |found - expected|, of finite elements alone
  std::int64_t spoiled = 0;  // elements that are infinite or NaN, and expected to be finite
  std::int64_t moved = 0;    // elements that are expected not to be zero
  std::int64_t still = 0;    // elements that are zero, and expected not to be
  std::int64_t strayed = 0;  // elements that are expected to be infinite or NaN, and are another number

  DistanceSums& operator+=(const DistanceSums& other) {
    squared_error += other.squared_error;
    squared_size += other.squared_size;
    squared_found += other.squared_found;
    product += other.product;
    largest_error = std::max(largest_error, other.largest_error);
    spoiled += other.spoiled;
    moved += other.moved;
    still += other.still;
    strayed += other.strayed;
    return *this;
  }
  friend bool operator==(const DistanceSums&, const DistanceSums&) = default;
};

/// The sums of `found` beside `expected`, in one pass and in as many threads as there are. In CPU memory.
/// Throws InvalidArgument where the two differ in size.
[[nodiscard]] DistanceSums distance_sums(std::span<const float> found, std::span<const float> expected);
[[nodiscard]] DistanceSums distance_sums(std::span<const double> found, std::span<const double> expected);

}  // namespace halfscope
