// exp and log against double precision, in units in the last place.
#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/format/bits.hpp>

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"

namespace halfscope {
namespace {

/// Distance of `actual` from `expected` in the spacing of FP32 numbers at `expected`.
double ulps(float actual, double expected) {
  const auto nearest = static_cast<float>(expected);
  const double spacing = static_cast<double>(std::nextafter(std::fabs(nearest), INFINITY)) -
                         std::fabs(static_cast<double>(nearest));
  return std::fabs(static_cast<double>(actual) - expected) / spacing;
}

TEST_CASE("exp is within 2 ulp of the exponential", "[elementary]") {
  double worst = 0;
  for (std::uint32_t bits = 0; bits < infinity_bits; bits += 509) {
    for (const float x : {from_bits(bits), -from_bits(bits)}) {
      if (x < -87.3f || x > 88.72f) continue;
      worst = std::max(worst, ulps(halfscope::exp(x), std::exp(static_cast<double>(x))));
    }
  }
  CHECK(worst < 2.0);
  CHECK(worst > 0.1);  // the loop has looked at something
}

TEST_CASE("exp beyond its range", "[elementary]") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(halfscope::exp(0.0f) == 1.0f);
  CHECK(halfscope::exp(-infinity) == 0.0f);
  CHECK(halfscope::exp(-200.0f) == 0.0f);
  CHECK(halfscope::exp(89.0f) == infinity);
  CHECK(halfscope::exp(infinity) == infinity);
  CHECK(std::isnan(halfscope::exp(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::isfinite(halfscope::exp(88.72f)));
}

TEST_CASE("log is within 2 ulp of the logarithm", "[elementary]") {
  double worst = 0;
  for (std::uint32_t bits = 0x00800000u; bits < infinity_bits; bits += 509) {
    const float x = from_bits(bits);
    worst = std::max(worst, ulps(halfscope::log(x), std::log(static_cast<double>(x))));
  }
  CHECK(worst < 2.0);
  CHECK(worst > 0.1);
}

TEST_CASE("log beyond its range", "[elementary]") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(halfscope::log(1.0f) == 0.0f);
  CHECK(halfscope::log(0.0f) == -infinity);
  CHECK(halfscope::log(infinity) == infinity);
  CHECK(std::isnan(halfscope::log(-1.0f)));
  CHECK(std::isnan(halfscope::log(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace halfscope
