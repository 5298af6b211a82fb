// Closed forms of sums' errors, against sums that are added up.
#include "experiments/analyses/sum_errors.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <halfscope/arithmetic/normal.hpp>

#include "tests/support/catch.hpp"

namespace halfscope::sum_errors_test {
namespace {

SumError of_ones(std::int64_t count, const char* model) {
  const std::vector<float> one{1.0f};
  return expected_error(one, count, parse_accumulate_model(model));
}

TEST_CASE("a sum of ones stands still at 2^p, and a tree of them overflows", "[sums][known]") {
  CHECK(of_ones(1 << 11, "fp16_sequential").relative == 0);
  CHECK(of_ones(1 << 14, "fp16_sequential").relative == Approx(1 - 0x1p11 / 0x1p14).margin(0.13));
  CHECK(of_ones(1 << 14, "bf16_sequential").relative == Approx(1 - 0x1p8 / 0x1p14).margin(0.02));
  CHECK(of_ones(1 << 20, "fp32_sequential").relative == 0);
  CHECK_FALSE(of_ones(1 << 15, "fp16_pairwise").overflows);
  CHECK(of_ones(1 << 16, "fp16_pairwise").overflows);
  CHECK_FALSE(of_ones(1 << 20, "fp16_sequential").overflows);
}

/// Root mean square of the error of sums of numbers near `mean`, relative.
double measured(double mean, std::int64_t count, const AccumulateModel& model, std::vector<float>& sample) {
  constexpr int sums = 48;
  double errors = 0, squares = 0;
  std::vector<float> terms(static_cast<std::size_t>(count));
  for (std::uint64_t s = 0; s < sums; ++s) {
    double exact = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      terms[i] = static_cast<float>(mean) + normal_pair({.seed = s, .site = 9}, i)[0];
      exact += double{terms[i]};
    }
    errors += std::pow(double{accumulate(terms, model)} - exact, 2);
    squares += exact * exact;
  }
  sample = terms;
  return std::sqrt(errors / squares);
}

TEST_CASE("errors of drawn sums lie within a factor of 2.5 of the closed form", "[sums]") {
  std::vector<float> sample;
  for (const char* name : {"fp16_sequential", "bf16_sequential", "fp16_pairwise", "bf16_pairwise"}) {
    const AccumulateModel model = parse_accumulate_model(name);
    for (const double mean : {0.0, 0.3, 3.0}) {
      for (const std::int64_t count : {300, 2000, 9000}) {
        INFO(name << ", mean " << mean << ", " << count << " terms");
        const double here = measured(mean, count, model, sample);
        const SumError expected = expected_error(sample, count, model);
        CHECK_FALSE(expected.overflows);
        CHECK(here < 2.5 * expected.relative);
        CHECK(here > expected.relative / 2.5);
      }
    }
  }
}

TEST_CASE("orders of products alone have no error of sums", "[sums]") {
  CHECK_THROWS_AS(of_ones(64, "fp16_fused"), InvalidArgument);
}

}  // namespace
}  // namespace halfscope::sum_errors_test
