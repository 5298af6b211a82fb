// The sums of a distance equal a plain loop's, on every instruction set and number of threads.
#include <halfscope/core/isa.hpp>
#include <halfscope/kernel/reduce/distance.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::distance_test {
namespace {

/// Numbers of many sizes, some of which are zero, infinite or NaN.
template <typename Number>
std::vector<Number> mixed(std::size_t size, unsigned seed, bool has_special) {
  std::mt19937 draw(seed);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> kind(0, 19), binade(-30, 30);
  std::vector<Number> values(size);
  for (Number& value : values) {
    const int drawn = kind(draw);
    value = static_cast<Number>(std::ldexp(normal(draw), binade(draw)));
    if (drawn < 3) value = 0;
    if (has_special && drawn == 18) value = std::numeric_limits<Number>::quiet_NaN();
    if (has_special && drawn == 19) value = -std::numeric_limits<Number>::infinity();
  }
  return values;
}

struct Plain {
  long double squared_error = 0, squared_size = 0, squared_found = 0, product = 0, magnitudes = 0;
  double largest_error = 0;
  std::int64_t spoiled = 0, moved = 0, still = 0, strayed = 0;
};

template <typename Number>
Plain plain(std::span<const Number> found, std::span<const Number> expected) {
  Plain sums;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!(expected[i] == 0)) {
      ++sums.moved;
      if (found[i] == 0) ++sums.still;
    }
    if (!std::isfinite(expected[i])) {
      const bool is_same = std::isnan(expected[i])
                               ? std::isnan(found[i])
                               : std::isinf(found[i]) && std::signbit(found[i]) == std::signbit(expected[i]);
      if (!is_same) ++sums.strayed;
      continue;
    }
    const long double error = static_cast<long double>(found[i]) - expected[i];
    sums.squared_error += error * error;
    sums.squared_size += static_cast<long double>(expected[i]) * expected[i];
    sums.squared_found += static_cast<long double>(found[i]) * found[i];
    sums.product += static_cast<long double>(found[i]) * expected[i];
    sums.magnitudes += std::abs(static_cast<long double>(found[i]) * expected[i]);
    if (!std::isfinite(found[i])) {
      ++sums.spoiled;
    } else {
      const double distance = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
      sums.largest_error = std::max(sums.largest_error, distance);
    }
  }
  return sums;
}

bool is_near(double sum, long double exact) {
  if (!std::isfinite(exact)) return std::isnan(exact) ? std::isnan(sum) : sum == static_cast<double>(exact);
  return std::abs(sum - static_cast<double>(exact)) <= 1e-12 * static_cast<double>(exact);
}

template <typename Number>
void check(std::size_t size, unsigned seed) {
  CAPTURE(size, seed);
  const std::vector<Number> expected = mixed<Number>(size, seed, seed % 2 == 1);
  const std::vector<Number> found = mixed<Number>(size, seed + 100, seed % 3 == 1);
  const Plain exact = plain<Number>(found, expected);
  const DistanceSums sums = distance_sums(std::span(found), std::span(expected));
  CHECK(is_near(sums.squared_error, exact.squared_error));
  CHECK(is_near(sums.squared_size, exact.squared_size));
  CHECK(is_near(sums.squared_found, exact.squared_found));
  if (exact.spoiled == 0)
    CHECK(std::abs(sums.product - static_cast<double>(exact.product)) <=
          1e-12 * static_cast<double>(exact.magnitudes));
  CHECK(sums.largest_error == exact.largest_error);
  CHECK(sums.strayed == exact.strayed);
  CHECK(sums.spoiled == exact.spoiled);
  CHECK(sums.moved == exact.moved);
  CHECK(sums.still == exact.still);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (const int threads : {1, 3}) {
      const Threads used(threads);
      const DistanceSums again = distance_sums(std::span(found), std::span(expected));
      CHECK((again == sums || std::isnan(sums.product)));  // infinity times 0
      CHECK(again.spoiled == sums.spoiled);
    }
  }
}

TEST_CASE("the sums of a distance are a plain loop's, to the bit on every machine", "[reduce][distance]") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 1000U}) {
      check<float>(size, seed);
      check<double>(size, seed);
    }
  }
  check<float>(200'003, 7);
  check<double>(140'001, 8);
}

}  // namespace
}  // namespace halfscope::distance_test
