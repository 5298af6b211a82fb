// Relative noise: its size, what it leaves alone, and that it is the same on every machine.
#include <halfscope/core/isa.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/noise.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::noise_test {
namespace {

std::vector<float> noisy(std::vector<float> values, const RelativeNoise& noise) {
  add_noise(values, noise);
  return values;
}

bool are_same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(
      a, b, {}, [](float x) { return std::bit_cast<std::uint32_t>(x); },
      [](float x) { return std::bit_cast<std::uint32_t>(x); });
}

TEST_CASE("noise is uniform, unbiased, and of the size that was asked for", "[noise]") {
  constexpr std::size_t size = 200'000;
  const std::vector<float> values = uniform_floats(size, 1.01F, 1.99F, 3);
  for (const float amount : {0x1p-5F, 0x1p-11F, 0x1p-16F}) {
    const std::vector<float> found = noisy(values, {.amount = amount, .seed = 11});
    std::vector<double> drawn(size);
    double sum = 0, squares = 0, next = 0;
    for (std::size_t i = 0; i < size; ++i) {
      drawn[i] = (double{found[i]} - values[i]) / values[i] / amount;
      sum += drawn[i];
      squares += drawn[i] * drawn[i];
      if (i > 0) next += drawn[i] * drawn[i - 1];
    }
    CAPTURE(amount);
    const auto [least, most] = std::ranges::minmax(drawn);
    CHECK(least >= -1.02);
    CHECK(most <= 1.02);
    CHECK(std::abs(sum / size) < 0.01);
    CHECK(std::abs(squares / size - 1.0 / 3) < 0.01);
    CHECK(std::abs(next / size) < 0.01);  // neighbours are not alike
  }
}

TEST_CASE("noise leaves whole numbers, infinities, NaNs and what a format holds", "[noise]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float amount = 0x1p-11F;
  std::vector<float> values = {0, -0.0F, 1, -3, 2048, -2047, infinity, -infinity};
  CHECK(are_same(noisy(values, {.amount = amount, .seed = 1}), values));
  CHECK(std::isnan(noisy({std::nanf("")}, {.amount = amount}).front()));
  values = std::vector<float>(1000, 5000);  // whole, and above 1 / amount
  CHECK(std::ranges::count(noisy(values, {.amount = amount}), 5000.0F) < 500);
  for (const FloatFormat& format : {fp16, bf16}) {
    values = uniform_floats(5000, -2, 2, 5);
    std::vector<float> held = values;
    for (std::size_t i = 0; i < held.size(); i += 2) held[i] = round(held[i], {.format = format});
    const std::vector<float> found = noisy(held, {.amount = amount, .seed = 2, .held = format});
    std::int64_t moved = 0;
    for (std::size_t i = 0; i < held.size(); ++i) {
      if (round(held[i], {.format = format}) == held[i]) {
        CHECK(found[i] == held[i]);
      } else {
        moved += found[i] != held[i];
      }
    }
    CHECK(moved > 2400);
  }
}

TEST_CASE("noise is the same on every instruction set and number of threads, and each seed's own",
          "[noise]") {
  const std::vector<float> values = uniform_floats(50'001, -300, 300, 7);
  const RelativeNoise noise{.amount = 0x1p-8F, .seed = 1234567890123, .held = bf16};
  const std::vector<float> found = noisy(values, noise);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (const int threads : {1, 3}) {
      const Threads used(threads);
      CHECK(are_same(noisy(values, noise), found));
    }
  }
  CHECK_FALSE(are_same(noisy(values, {.amount = 0x1p-8F, .seed = 1234567890124, .held = bf16}), found));
}

}  // namespace
}  // namespace halfscope::noise_test
