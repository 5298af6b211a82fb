// The loops over weights and updates beside their definitions, on every instruction set.
#include <halfscope/kernel/update/detail/update_lanes.hpp>

#include <cmath>
#include <vector>

#include <halfscope/core/isa.hpp>
#include <halfscope/core/random.hpp>
#include <halfscope/format/bits.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope::update_lanes_test {
namespace {

constexpr std::array<std::size_t, 6> sizes{0, 1, 15, 31, 1024, 257 * 259};

/// Any bit pattern, zeros among them, and now and then a number near the one of the stream before.
std::vector<float> any_floats(std::size_t size, std::uint64_t seed) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t bits = RandomStream{.seed = seed}.bits(i);
    values[i] = bits % 11 == 0 ? 0.0f
                : i % 3 == 0
                    ? std::ldexp(1.0f + static_cast<float>(bits % 7), -(static_cast<int>(bits >> 27)))
                    : from_bits(bits);
  }
  return values;
}

/// The exact sum in long double where that holds it; then the float below or above it that ends in a 1 bit.
float sum_to_odd_slowly(float a, float b) {
  const float nearest = a + b;
  const long double exact = static_cast<long double>(a) + static_cast<long double>(b);
  if (!std::isfinite(nearest) || exact == static_cast<long double>(nearest)) return nearest;
  const bool odd = (to_bits(nearest) & 1u) != 0;
  if (odd) return nearest;
  return std::nextafter(nearest, exact > static_cast<long double>(nearest) ? INFINITY : -INFINITY);
}

bool exact_in_long_double(float a, float b) {
  return a == 0 || b == 0 || !std::isfinite(a) || !std::isfinite(b) ||
         std::abs(std::ilogb(a) - std::ilogb(b)) < 39;
}

UpdateLanes count_slowly(const UpdateArrays& arrays) {
  UpdateLanes counters;
  for (std::size_t i = 0; i < arrays.count; ++i) {
    if (arrays.update[i] == 0) continue;
    ++counters.nonzero;
    if (arrays.updated[i] == arrays.stored[i]) ++counters.lost;
    const double moved = std::abs(double{arrays.updated[i]} - double{arrays.stored[i]});
    if (!std::isfinite(moved)) continue;
    counters.applied.at(i % UpdateLanes::lanes) += moved;
    counters.intended.at(i % UpdateLanes::lanes) += std::abs(double{arrays.update[i]});
  }
  return counters;
}

}  // namespace

TEST_CASE("sums are rounded to odd", "[update]") {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (const std::size_t size : sizes) {
      const std::vector<float> a = any_floats(size, 1), b = any_floats(size, 2);
      std::vector<float> sums(size);
      add_updates(a, b, fp16.mantissa_bits, sums);
      std::size_t wrong = 0, compared = 0;
      for (std::size_t i = 0; i < size; ++i) {
        if (!exact_in_long_double(a[i], b[i])) continue;
        ++compared;
        const float expected = sum_to_odd_slowly(a[i], b[i]);
        wrong += same_but_nan_bits(sums[i], expected) ? 0u : 1u;
      }
      INFO(name_of(isa) << ", " << size);
      CHECK(wrong == 0);
      CHECK(compared >= size / 4);
    }
  }
}

TEST_CASE("updates are counted lane by lane", "[update]") {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (const std::size_t size : sizes) {
      const std::vector<float> stored = any_floats(size, 3);
      std::vector<float> update = any_floats(size, 4), updated(size);
      for (float& u : update) u = std::isfinite(u) ? u : 0.5f;  // the sums stay comparable
      for (std::size_t i = 0; i < size; ++i) updated[i] = i % 2 == 0 ? stored[i] : stored[i] + update[i];
      const UpdateArrays arrays{stored.data(), updated.data(), update.data(), size};
      UpdateLanes counters;
      count_updates(arrays, counters);
      INFO(name_of(isa) << ", " << size);
      CHECK(counters == count_slowly(arrays));
      CHECK((counters.lost > 0 || size < 2));
    }
  }
}

TEST_CASE("ratios are those of elements without a zero", "[update]") {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (const std::size_t size : sizes) {
      const std::vector<float> weights = any_floats(size, 5), updates = any_floats(size, 6);
      std::vector<float> ratios(size);
      const std::size_t without = update_ratios(weights, updates, ratios);
      std::size_t zeros = 0, wrong = 0;
      for (std::size_t i = 0; i < size; ++i) {
        const bool zero = weights[i] == 0 || updates[i] == 0;
        const float expected = zero ? 0.0f : std::abs(updates[i] / weights[i]);
        zeros += zero ? 1u : 0u;
        wrong += same_but_nan_bits(ratios[i], expected) ? 0u : 1u;
      }
      INFO(name_of(isa) << ", " << size);
      CHECK((without == zeros && wrong == 0));
    }
  }
}

}  // namespace halfscope::update_lanes_test
