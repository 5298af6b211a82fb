// The histogram as a value: adding, merging and totals.
#include <halfscope/stats/exponent_histogram.hpp>

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::exponent_histogram_test {
namespace {

ExponentHistogram histogram_of(std::span<const float> values) {
  ExponentHistogram histogram;
  histogram.add(values);
  return histogram;
}

TEST_CASE("known values are filed where they belong", "[histogram]") {
  const std::vector<float> values{1.0f,  -1.5f,     0x1.ffep0f,   0.75f,    0.0f, -0.0f,     -0.0f,
                                  65504, 0x1p-149f, -0x1.8p-148f, INFINITY, NAN,  -INFINITY, -NAN};
  const ExponentHistogram h = histogram_of(values);
  CHECK(h.elements() == 14);
  CHECK(h.nonzero() == 7);
  CHECK(h.zeros() == 3);
  CHECK(h.negative_zeros() == 2);
  CHECK(h.infinities() == 2);
  CHECK(h.nans() == 2);
  CHECK(h.max_abs() == 65504);
  CHECK(h.binade(0) ==
        BinadeCounts{.all = 3, .at_power_of_two = 1, .rounds_to_overflow = 1, .rounds_to_normal = 1});
  CHECK(h.count(-1) == 1);
  CHECK(h.binade(15) == BinadeCounts{.all = 1, .rounds_to_normal = 1});
  CHECK(h.count(-149) == 1);
  CHECK(h.count(-148) == 1);
}

TEST_CASE("an empty histogram and exponents that no float has", "[histogram]") {
  const ExponentHistogram empty;
  CHECK(empty == histogram_of({}));
  CHECK(empty.elements() == 0);
  CHECK(empty.max_abs() == 0);
  const ExponentHistogram h = histogram_of(random_floats(1000));
  CHECK(h.count(-150) == 0);
  CHECK(h.count(128) == 0);
  CHECK(h.count(1'000'000) == 0);
  CHECK(h != empty);
}

TEST_CASE("parts merge to the whole, in any order", "[histogram]") {
  const std::vector<float> values = random_floats(257 * 259);
  const ExponentHistogram whole = histogram_of(values);
  CHECK(whole.elements() == 257 * 259);
  const std::span<const float> all(values);
  const ExponentHistogram a = histogram_of(all.first(31));
  const ExponentHistogram b = histogram_of(all.subspan(31, 1000));
  const ExponentHistogram c = histogram_of(all.subspan(1031));
  ExponentHistogram forward = a;
  forward.merge(b);
  forward.merge(c);
  ExponentHistogram backward = c;
  backward.merge(b);
  backward.merge(a);
  CHECK(forward == whole);
  CHECK(backward == whole);
  backward.merge(a);
  CHECK(backward != whole);
}

TEST_CASE("counts at the edges of two formats are not mixed", "[histogram]") {
  ExponentHistogram half = histogram_of(random_floats(100));
  const ExponentHistogram before = half;
  check_says(message_of<InvalidArgument>([&] { half.merge(ExponentHistogram(fp8_e4m3)); }),
             {"fp16", "fp8_e4m3"});
  CHECK(half == before);
}

}  // namespace
}  // namespace halfscope::exponent_histogram_test
