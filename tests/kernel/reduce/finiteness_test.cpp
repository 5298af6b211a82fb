// One number that is not finite is noticed wherever it stands, on every instruction set and number of
// threads.
#include <halfscope/core/isa.hpp>
#include <halfscope/kernel/reduce/finiteness.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::finiteness_test {
namespace {

template <typename Bits>
void check(const std::vector<Bits>& numbers, Bits exponent, bool expected) {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (const int threads : {1, 3}) {
      const Threads used(threads);
      CHECK(all_finite(std::span(numbers), exponent) == expected);
    }
  }
}

/// Patterns of all kinds; each with a full exponent loses one bit of it.
template <typename Bits>
std::vector<Bits> finite(std::size_t size, Bits exponent, std::mt19937_64& draw) {
  std::vector<Bits> numbers(size);
  for (Bits& bits : numbers) {
    bits = static_cast<Bits>(draw() | (draw() % 2 == 0 ? exponent : 0));
    if ((bits & exponent) == exponent) bits = static_cast<Bits>(bits ^ (exponent & -exponent));
  }
  return numbers;
}

template <typename Bits>
void check_everywhere(Bits exponent, std::size_t size, std::mt19937_64& draw) {
  CAPTURE(exponent, size);
  std::vector<Bits> numbers = finite(size, exponent, draw);
  check(numbers, exponent, true);
  for (int time = 0; time < 5 && size > 0; ++time) {
    const std::size_t place = draw() % size;
    CAPTURE(place);
    const Bits own = std::exchange(numbers[place], static_cast<Bits>(draw() | exponent));
    check(numbers, exponent, false);
    numbers[place] = own;
  }
}

TEST_CASE("a number that is not finite is noticed wherever it stands", "[reduce][finiteness]") {
  std::mt19937_64 draw(1);
  for (std::size_t size = 0; size < 300; ++size) {
    check_everywhere<std::uint16_t>(0x7C00, size, draw);
    check_everywhere<std::uint16_t>(0x7F80, size, draw);
    check_everywhere<std::uint32_t>(0x7F800000, size, draw);
    check_everywhere<std::uint64_t>(0x7FF0000000000000, size, draw);
  }
  for (const std::size_t size : {std::size_t{1} << 17, (std::size_t{1} << 19) + 77}) {
    check_everywhere<std::uint16_t>(0x7C00, size, draw);
    check_everywhere<std::uint32_t>(0x7F800000, size, draw);
    check_everywhere<std::uint64_t>(0x7FF0000000000000, size, draw);
  }
}

TEST_CASE("FP32 numbers are finite as the C library has it", "[reduce][finiteness]") {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> edges{0.0f,
                                 -0.0f,
                                 Limits::denorm_min(),
                                 Limits::max(),
                                 Limits::lowest(),
                                 Limits::infinity(),
                                 -Limits::infinity(),
                                 Limits::quiet_NaN(),
                                 Limits::signaling_NaN()};
  for (const float edge : edges)
    check<std::uint32_t>({std::bit_cast<std::uint32_t>(edge)}, 0x7F800000, std::isfinite(edge));
}

}  // namespace
}  // namespace halfscope::finiteness_test
