// The loops of a distance's sums, compiled once per instruction set.
#include <halfscope/kernel/reduce/detail/distance_simd.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace halfscope {
namespace {

constexpr std::size_t lanes = 16;  // in each instruction set, so that the sums are the same

/// Element i is added to lane i % 16. Counts are as wide as the numbers, for the sake of vectors.
template <typename Number>
struct Lanes {
  using Count = std::conditional_t<sizeof(Number) == sizeof(float), std::int32_t, std::int64_t>;

  double error[lanes] = {}, size[lanes] = {}, found[lanes] = {}, product[lanes] = {}, largest[lanes] = {};
  Count spoiled[lanes] = {}, moved[lanes] = {}, still[lanes] = {}, strayed[lanes] = {};
};

template <typename Number>
DistanceSums sums_of(const Number* found, const Number* expected, std::size_t count) {
  Lanes<Number> sums;
  using Count = typename Lanes<Number>::Count;
  const auto add = [&](std::size_t i, std::size_t lane) __attribute__((always_inline)) {
    const Number x = found[i], wanted = expected[i];
    const bool is_finite = wanted - wanted == 0;
    const double size = is_finite ? static_cast<double>(wanted) : 0.0;
    const double own = is_finite ? static_cast<double>(x) : 0.0;
    const double error = own - size;
    const double distance = std::abs(error);
    sums.error[lane] += error * error;
    sums.size[lane] += size * size;
    sums.found[lane] += own * own;
    sums.product[lane] += own * size;
    const bool is_larger = (distance > sums.largest[lane]) & (x - x == 0);
    sums.largest[lane] = is_larger ? distance : sums.largest[lane];
    sums.spoiled[lane] += static_cast<Count>(is_finite & !(x - x == 0));
    sums.moved[lane] += static_cast<Count>(wanted != 0);
    sums.still[lane] += static_cast<Count>((wanted != 0) & (x == 0));
    const bool is_same = (x == wanted) | ((x != x) & (wanted != wanted));
    sums.strayed[lane] += static_cast<Count>(!is_finite & !is_same);
  };
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
#pragma omp simd
    for (std::size_t lane = 0; lane < lanes; ++lane) add(i + lane, lane);
  }
  for (std::size_t i = whole; i < count; ++i) add(i, i - whole);
  DistanceSums total;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    total += {.squared_error = sums.error[lane],
              .squared_size = sums.size[lane],
              .squared_found = sums.found[lane],
              .product = sums.product[lane],
              .largest_error = sums.largest[lane],
              .spoiled = sums.spoiled[lane],
              .moved = sums.moved[lane],
              .still = sums.still[lane],
              .strayed = sums.strayed[lane]};
  }
  return total;
}

}  // namespace

template <>
DistanceSums tile_distance_isa<target_isa>(const float* found, const float* expected, std::size_t count) {
  return sums_of(found, expected, count);
}

template <>
DistanceSums tile_distance_isa<target_isa>(const double* found, const double* expected, std::size_t count) {
  return sums_of(found, expected, count);
}

}  // namespace halfscope
