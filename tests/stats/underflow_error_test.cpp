// Underflow errors and flushed magnitudes against casts of every number, scaled, one by one.
#include <halfscope/stats/what_if.hpp>

#include <cmath>

#include <halfscope/core/random.hpp>

#include "tests/reference/rounding.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope::underflow_error_test {
namespace {

ExponentHistogram counted(std::span<const float> values, const FloatFormat& format) {
  ExponentHistogram histogram(format);
  histogram.add(values);
  return histogram;
}

double of(std::span<const float> values, const FloatFormat& format, int scale_log2) {
  return underflow_error(counted(values, format), scale_log2);
}

double one_by_one(std::span<const float> values, const FloatFormat& format, int scale_log2) {
  double squares = 0, errors = 0;
  for (const float x : values) {
    if (!std::isfinite(x)) continue;
    const double scaled = std::abs(std::ldexp(double{x}, scale_log2));
    const double cast = reference::round(scaled, {format});
    squares += scaled * scaled;
    if (cast < reference::limits(format).min_normal) errors += (cast - scaled) * (cast - scaled);
  }
  return squares == 0 ? 0 : std::sqrt(errors / squares);
}

double magnitude_of(std::span<const float> values, const FloatFormat& format, int scale_log2) {
  return flushed_magnitude(counted(values, format), scale_log2);
}

double magnitude_one_by_one(std::span<const float> values, const FloatFormat& format, int scale_log2) {
  double all = 0, flushed = 0;
  for (const float x : values) {
    if (!std::isfinite(x)) continue;
    const double scaled = std::abs(std::ldexp(double{x}, scale_log2));
    all += scaled;
    if (reference::round(scaled, {format}) == 0) flushed += scaled;
  }
  return all == 0 ? 0 : flushed / all;
}

/// Numbers of either sign, uniform in each of twelve binades up to 2^-10, with zeros and numbers that are not
/// finite.
std::vector<float> spread_values() {
  std::vector<float> values{0, -0.0f, NAN, INFINITY};
  const RandomStream stream{.seed = 3};
  for (std::uint64_t i = 0; i < 120000; ++i) {
    const float magnitude = std::ldexp(1 + stream.uniform(i), static_cast<int>(i % 12) - 22);
    values.push_back(i % 2 == 0 ? magnitude : -magnitude);
  }
  return values;
}

TEST_CASE("underflow errors are those of casting each number", "[underflow_error]") {
  const std::vector<float> values = spread_values();
  for (const char* name : {"fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "fp16_ftz"}) {
    const FloatFormat format = parse_format(name);
    const int lowest =
        format.lowest_exponent() + 10;  // the scale at which the largest numbers begin to be flushed
    for (int scale_log2 = lowest - 3; scale_log2 < lowest + 25; ++scale_log2) {
      INFO(name << " at 2^" << scale_log2);
      const double expected = one_by_one(values, format, scale_log2);
      CHECK(of(values, format, scale_log2) == Approx(expected).epsilon(0.03).margin(1e-12));
    }
  }
}

TEST_CASE("flushed magnitudes are those of casting each number", "[underflow_error]") {
  const std::vector<float> values = spread_values();
  for (const char* name : {"fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "fp16_ftz"}) {
    const FloatFormat format = parse_format(name);
    const int lowest = format.lowest_exponent() + 10;
    for (int scale_log2 = lowest - 3; scale_log2 < lowest + 25; ++scale_log2) {
      INFO(name << " at 2^" << scale_log2);
      const double expected = magnitude_one_by_one(values, format, scale_log2);
      CHECK(magnitude_of(values, format, scale_log2) == Approx(expected).epsilon(0.03).margin(1e-12));
    }
  }
}

TEST_CASE("flushed magnitudes of powers of two are exact", "[underflow_error]") {
  // A word's right probability, and 4,095 others that weigh as much together.
  std::vector<float> values(4095, 0x1p-25f);
  values.push_back(0x1p-13f);
  CHECK(magnitude_of(values, fp16, 0) == Approx(4095.0 / (4095 + 4096)));
  CHECK(magnitude_of(values, fp16, 1) == 0);
  CHECK(magnitude_of(values, fp16, -12) == 1);
  CHECK(of(values, fp16, 0) < 0.02);
}

TEST_CASE("underflow errors of powers of two are exact", "[underflow_error]") {
  const std::vector<float> values{0x1p-26f, 0x1p-26f, -0x1p-25f, 0x1p-24f};
  const double all = std::sqrt(4 + 4 + 16 + 64);  // in units of 2^-27
  CHECK(of(values, fp16, 0) == Approx(std::sqrt(4 + 4 + 16) / all));
  CHECK(of(values, fp16, 1) == Approx(std::sqrt(4 + 4) / all));
  CHECK(of(values, fp16, 2) == 0);
  CHECK(of(values, fp16, -1) == 1);
}

TEST_CASE(
    "underflow errors and flushed magnitudes fall from 1 to 0 as the scale grows, whatever the exponents",
    "[underflow_error]") {
  const std::vector<float> values{0x1p-149f, -3.3f, 0x1.8p-40f, 0x1.fp127f};
  for (const auto& share : {of, magnitude_of}) {
    double before = 1;
    for (int scale_log2 = -600; scale_log2 <= 600; ++scale_log2) {
      const double error = share(values, fp16, scale_log2);
      CHECK(error <= before);
      before = error;
    }
    CHECK(share(values, fp16, -600) == 1);
    CHECK(share(values, fp16, 600) == 0);
    CHECK(share(std::vector<float>{0, NAN}, fp16, 0) == 0);
  }
}

}  // namespace
}  // namespace halfscope::underflow_error_test
