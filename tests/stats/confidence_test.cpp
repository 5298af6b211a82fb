// Confidence intervals against published tables and closed forms.
#include <halfscope/stats/confidence.hpp>

#include <cmath>
#include <utility>

#include "tests/support/catch.hpp"

namespace halfscope::confidence_test {
namespace {

/// `count` values whose mean has a standard error of 1.
std::vector<double> of_unit_error(std::size_t count) {
  std::vector<double> values(count, 0);
  values[0] = static_cast<double>(count);
  return values;
}

TEST_CASE("95 % intervals are those of the published t table", "[confidence]") {
  // 0.975 quantiles of Student's t for 1 to 30 degrees of freedom, as statistics textbooks print them.
  constexpr double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                              2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                              2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  constexpr double half_a_digit = 0.00051;
  for (std::size_t freedom = 1; freedom <= std::size(table); ++freedom) {
    INFO(freedom << " degrees of freedom");
    CHECK(std::fabs(confidence_95(of_unit_error(freedom + 1)) - table[freedom - 1]) < half_a_digit);
  }
  for (const auto& [freedom, quantile] : {std::pair{40, 2.021}, {60, 2.000}, {120, 1.980}}) {
    INFO(freedom << " degrees of freedom");
    CHECK(std::fabs(confidence_95(of_unit_error(static_cast<std::size_t>(freedom) + 1)) - quantile) <
          half_a_digit);
  }
  // With one degree of freedom t is Cauchy's distribution, with two it has a closed form.
  CHECK(confidence_95(of_unit_error(2)) == Approx(std::tan(0.475 * std::acos(-1.0))).epsilon(1e-12));
  CHECK(confidence_95(of_unit_error(3)) == Approx(0.95 * std::sqrt(2 / (1 - 0.95 * 0.95))).epsilon(1e-12));
}

TEST_CASE("an interval is as wide as its values scatter", "[confidence]") {
  // Standard deviation sqrt(5/3), t = 3.18244630528.
  CHECK(confidence_95({1, 2, 3, 4}) == Approx(3.18244630528 * std::sqrt(5.0 / 3.0) / 2));
  CHECK(confidence_95({7, 7, 7}) == 0);
}

}  // namespace
}  // namespace halfscope::confidence_test
