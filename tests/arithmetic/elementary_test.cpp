// The elementary functions against double precision on a sample of all floats, and where they have no plain
// value.
#include <halfscope/arithmetic/elementary.hpp>

#include "tests/arithmetic/elementary_oracle.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::elementary_test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

template <Elementary function>
void check_sample() {
  double worst = 0;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 4099) {
    const float x = from_bits(static_cast<std::uint32_t>(bits));
    worst = std::max(worst, ulps(elementary<function>(x), exact(function, x)));
  }
  INFO(name_of(function) << " errs by up to " << worst << " ulp");
  CHECK(worst <= elementary_ulps[static_cast<std::size_t>(function)]);
  CHECK(worst > 0.5);  // the loop has looked at something
}

TEST_CASE("elementary functions err by no more than they say", "[elementary]") {
  check_sample<Elementary::exp>();
  check_sample<Elementary::log>();
  check_sample<Elementary::tanh>();
  check_sample<Elementary::erf>();
  check_sample<Elementary::rsqrt>();
  check_sample<Elementary::sigmoid>();
}

TEST_CASE("elementary functions at the ends of their range", "[elementary]") {
  struct Case {
    float (*function)(float);
    float x, expected;
  };
  for (const auto& [function, x, expected] : {
           Case{elementary<Elementary::exp>, 0.0f, 1.0f},
           Case{elementary<Elementary::exp>, -0.0f, 1.0f},
           Case{elementary<Elementary::exp>, -infinity, 0.0f},
           Case{elementary<Elementary::exp>, -200.0f, 0.0f},
           Case{elementary<Elementary::exp>, -103.5f, 0x1p-149f},
           Case{elementary<Elementary::exp>, 88.72284f, infinity},
           Case{elementary<Elementary::exp>, infinity, infinity},
           Case{elementary<Elementary::log>, 1.0f, 0.0f},
           Case{elementary<Elementary::log>, 0.0f, -infinity},
           Case{elementary<Elementary::log>, -0.0f, -infinity},
           Case{elementary<Elementary::log>, infinity, infinity},
           Case{elementary<Elementary::log>, 0x1p-149f, -103.27893f},
           Case{elementary<Elementary::log>, -1.0f, not_a_number},
           Case{elementary<Elementary::log>, -0x1p-149f, not_a_number},
           Case{elementary<Elementary::tanh>, -0.0f, -0.0f},
           Case{elementary<Elementary::tanh>, -infinity, -1.0f},
           Case{elementary<Elementary::tanh>, infinity, 1.0f},
           Case{elementary<Elementary::erf>, -0.0f, -0.0f},
           Case{elementary<Elementary::erf>, -infinity, -1.0f},
           Case{elementary<Elementary::erf>, infinity, 1.0f},
           Case{elementary<Elementary::rsqrt>, 4.0f, 0.5f},
           Case{elementary<Elementary::rsqrt>, -0.0f, -infinity},
           Case{elementary<Elementary::rsqrt>, infinity, 0.0f},
           Case{elementary<Elementary::rsqrt>, -1.0f, not_a_number},
           Case{elementary<Elementary::sigmoid>, 0.0f, 0.5f},
           Case{elementary<Elementary::sigmoid>, -infinity, 0.0f},
           Case{elementary<Elementary::sigmoid>, infinity, 1.0f},
       }) {
    INFO(x << " gives " << function(x) << ", not " << expected);
    CHECK(to_bits(function(x)) == to_bits(expected));
  }
}

TEST_CASE("the cosine of half a period", "[elementary]") {
  constexpr double pi = 3.14159265358979323846;
  double worst = 0;
  for (int i = 0; i <= 1'000'000; ++i) {
    const double x = pi * i / 1'000'000;
    const long double expected = std::cos(static_cast<long double>(x));
    worst = std::max(worst,
                     static_cast<double>(std::fabs(static_cast<long double>(halfscope::cos(x)) - expected)));
  }
  CHECK(worst < 0x1p-52);
  CHECK(worst > 0x1p-56);
  CHECK(halfscope::cos(0.0) == 1.0);
  CHECK(halfscope::cos(pi) == -1.0);
}

}  // namespace
}  // namespace halfscope::elementary_test
