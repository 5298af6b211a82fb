// Closed forms of sums' errors, against sums that are added up.
#include "experiments/analyses/sum_errors.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <halfscope/arithmetic/normal.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

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

/// Statistics of columns as batch norm adds them up, beside FP64's: medians over the columns.
NormError measured_norm(double mean, std::int64_t count, const AccumulateModel& model,
                        std::vector<float>& sample) {
  constexpr std::size_t columns = 24;
  std::vector<float> x(static_cast<std::size_t>(count) * columns), means(columns), variances(columns);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(mean) + normal_pair({.seed = 11, .site = 5}, i / 2)[i % 2];
  ColumnTerms terms{.x = x.data(), .rows = count, .columns = columns};
  column_sums(terms, model, means);
  for (float& m : means) m /= static_cast<float>(count);
  terms.term = Term::squared_deviation;
  terms.center = means.data();
  column_sums(terms, model, variances);
  std::vector<double> ratios, shifts;
  for (std::size_t c = 0; c < columns; ++c) {
    double sum = 0, squares = 0;
    for (std::size_t i = c; i < x.size(); i += columns) sum += double{x[i]};
    const double exact = sum / static_cast<double>(count);
    for (std::size_t i = c; i < x.size(); i += columns) squares += std::pow(double{x[i]} - exact, 2);
    ratios.push_back(double{variances[c]} / squares);
    shifts.push_back((exact - double{means[c]}) / std::sqrt(squares / static_cast<double>(count)));
  }
  sample.assign(x.begin(), x.begin() + std::min<std::ptrdiff_t>(std::ssize(x), 8192));
  const auto median = [](std::vector<double>& values) {
    std::ranges::nth_element(values, values.begin() + columns / 2);
    return values[columns / 2];
  };
  return {.variance = median(ratios), .shift = median(shifts)};
}

TEST_CASE("statistics of a normalisation lie within a quarter of the closed form", "[sums][repeats]") {
  std::vector<float> sample;
  for (const char* name : {"bf16_sequential", "fp16_sequential", "e8m5_sequential", "e6m8_sequential",
                           "bf16_chunked(64)", "bf16_pairwise", "bf16_kahan"}) {
    const AccumulateModel model = parse_accumulate_model(name);
    for (const double mean : {0.0, 0.3, -1.0, 3.0, 10.0}) {
      for (const std::int64_t count : {100, 900, 5000, 30000}) {
        INFO(name << ", mean " << mean << ", " << count << " terms");
        const NormError here = measured_norm(mean, count, model, sample);
        const NormError expected = expected_norm_error(sample, count, model);
        if (!std::isfinite(here.variance)) {
          CHECK_FALSE(std::isfinite(expected.variance));
          continue;
        }
        CHECK(here.variance < 1.25 * expected.variance);
        CHECK(here.variance > expected.variance / 1.25);
        CHECK(here.shift == Approx(expected.shift).margin(0.03 * (1 + std::fabs(mean))).epsilon(0));
      }
    }
  }
}

TEST_CASE("equal squares stand still, so that a variance falls as the inverse of the count",
          "[sums][known]") {
  const std::vector<float> sides{-1.1f, 1.1f};
  // In BF16 numbers from 256 on are 2 apart, which 1.21 is rounded to; from 512 on 4, of which it is none.
  for (const std::int64_t count : {1 << 12, 1 << 16, 1 << 20}) {
    const NormError found = expected_norm_error(sides, count, parse_accumulate_model("bf16_sequential"));
    CHECK(found.variance == Approx(512 / (1.21 * static_cast<double>(count))).epsilon(0.01));
    CHECK(found.shift == Approx(0).margin(1e-9));
  }
  const auto in_fp32 = expected_norm_error(sides, 1 << 12, parse_accumulate_model("fp32_sequential"));
  CHECK(in_fp32.variance == Approx(1).epsilon(1e-4));
}

TEST_CASE("orders of products alone have no error of sums", "[sums]") {
  CHECK_THROWS_AS(of_ones(64, "fp16_fused"), InvalidArgument);
}

}  // namespace
}  // namespace halfscope::sum_errors_test
