// Sums of magnitudes equal a plain loop's, along every axis, on every instruction set and number of threads.
#include <halfscope/core/isa.hpp>
#include <halfscope/kernel/reduce/magnitudes.hpp>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::magnitudes_test {
namespace {

std::vector<float> mixed(std::size_t size, unsigned seed) {
  std::mt19937 draw(seed);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> binade(-20, 20);
  std::vector<float> values(size);
  for (float& value : values) value = std::ldexp(normal(draw), binade(draw));
  return values;
}

std::vector<long double> plain(const std::vector<float>& values, const AxisExtents& axis) {
  std::vector<long double> sums(axis.outer * axis.inner);
  for (std::size_t i = 0; i < values.size(); ++i)
    sums[i / axis.inner / axis.summed * axis.inner + i % axis.inner] += std::abs(values[i]);
  return sums;
}

std::vector<double> summed(const std::vector<float>& values, const AxisExtents& axis) {
  std::vector<double> sums(axis.outer * axis.inner, -1.0);
  magnitude_sums(values, axis, sums);
  return sums;
}

void check(const AxisExtents& axis, unsigned seed) {
  CAPTURE(axis.outer, axis.summed, axis.inner, seed);
  const std::vector<float> values = mixed(axis.outer * axis.summed * axis.inner, seed);
  const std::vector<double> sums = summed(values, axis);
  const std::vector<long double> exact = plain(values, axis);
  for (std::size_t i = 0; i < sums.size(); ++i)
    REQUIRE(std::abs(sums[i] - static_cast<double>(exact[i])) <= 1e-12 * static_cast<double>(exact[i]));
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (const int threads : {1, 3}) {
      const Threads used(threads);
      CHECK(summed(values, axis) == sums);
    }
  }
}

TEST_CASE("sums of magnitudes are a plain loop's, to the bit on every machine", "[reduce][magnitudes]") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 draw(seed);
    std::uniform_int_distribution<std::size_t> extent(0, 40);
    check({.outer = extent(draw), .summed = extent(draw), .inner = seed % 3 == 0 ? 1 : extent(draw)}, seed);
  }
  check({.outer = 3, .summed = 5000, .inner = 1}, 1);
  check({.outer = 2, .summed = 31, .inner = 1300}, 2);
  check({.outer = 700, .summed = 17, .inner = 1}, 3);
}

TEST_CASE("what is not finite stays in the sum of its own row", "[reduce][magnitudes]") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{1, -infinity, 2, -3};
  CHECK(summed(values, {.outer = 2, .summed = 2}) == std::vector<double>{infinity, 5});
  CHECK(summed(values, {.summed = 2, .inner = 2}) == std::vector<double>{3, infinity});
}

}  // namespace
}  // namespace halfscope::magnitudes_test
