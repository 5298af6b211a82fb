// The what-if counts against rounding every number, scaled, one by one.
#include <halfscope/stats/what_if.hpp>

#include <climits>

#include <halfscope/format/round.hpp>

#include "tests/reference/rounding.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope::what_if_test {
namespace {

/// `format` with one more exponent bit: what it rounds beyond the largest number of `format` overflows there.
FloatFormat wider(FloatFormat format) {
  ++format.exponent_bits;
  format.specials = Specials::ieee;
  return format;
}

WhatIf one_by_one(std::span<const float> values, const FloatFormat& format, int scale_log2) {
  const reference::Limits limits = reference::limits(format);
  WhatIf result{.scale_log2 = scale_log2, .elements = static_cast<std::int64_t>(values.size())};
  for (const float x : values) {
    if (!std::isfinite(x) || x == 0) continue;
    ++result.nonzero;
    const double scaled = std::abs(std::ldexp(double{x}, scale_log2));
    const double cast = reference::round(scaled, {format});
    result.flushed += cast == 0 ? 1 : 0;
    result.subnormal += cast != 0 && cast < limits.min_normal ? 1 : 0;
    result.overflow += reference::round(scaled, {wider(format)}) > limits.max_finite ? 1 : 0;
  }
  return result;
}

WhatIf from_histogram(std::span<const float> values, const FloatFormat& format, int scale_log2) {
  ExponentHistogram histogram(format);
  histogram.add(values);
  return what_if(histogram, scale_log2);
}

/// The boundaries of `format` divided by 2^scale_log2, each with its FP32 neighbours, of either sign.
std::vector<float> boundaries_at(const FloatFormat& format, int scale_log2) {
  const auto [min_normal, max_finite] = reference::limits(format);
  const double step = std::ldexp(min_normal, -format.mantissa_bits);
  const double last_step = std::ldexp(1.0, std::ilogb(max_finite) - format.mantissa_bits);
  std::vector<float> values;
  for (const double edge :
       {step / 2, step, 1.5 * step, min_normal - step, min_normal - step / 2, min_normal, min_normal + step,
        max_finite, max_finite + last_step / 4, max_finite + last_step / 2, max_finite + last_step}) {
    const auto x = static_cast<float>(std::ldexp(edge, -scale_log2));
    for (const float near : {std::nextafter(x, 0.0f), x, std::nextafter(x, INFINITY)}) {
      values.push_back(near);
      values.push_back(-near);
    }
  }
  return values;
}

/// Each format's boundaries at many scales, FP32's subnormals, zeros, infinities, NaNs and random bits.
std::vector<float> adversarial_floats(const FloatFormat& format) {
  std::vector<float> values = boundary_floats(format);
  for (int scale_log2 = -40; scale_log2 <= 40; ++scale_log2) {
    const std::vector<float> edges = boundaries_at(format, scale_log2);
    values.insert(values.end(), edges.begin(), edges.end());
  }
  for (std::uint32_t bits = 1; bits < (1u << 23); bits += bits / 5 + 1) values.push_back(from_bits(bits));
  const std::vector<float> random = random_floats(2000);
  values.insert(values.end(), random.begin(), random.end());
  return values;
}

TEST_CASE("what-if counts are exact in every format at every scale", "[what_if]") {
  for (const FloatFormat& format : formats_under_test()) {
    INFO(to_string(format));
    const std::vector<float> values = adversarial_floats(format);
    ExponentHistogram histogram(format);
    histogram.add(values);
    const int range = format == fp16 ? 200 : 40;
    for (int scale_log2 = -range; scale_log2 <= range; ++scale_log2) {
      INFO("scale 2^" << scale_log2);
      CHECK(what_if(histogram, scale_log2) == one_by_one(values, format, scale_log2));
    }
  }
}

TEST_CASE("what-if counts are exact for each number by itself", "[what_if]") {
  for (const FloatFormat& format : formats_under_test()) {
    for (const int scale_log2 : {-40, -8, -1, 0, 1, 3, 16, 40}) {
      for (const float x : boundaries_at(format, scale_log2)) {
        INFO(to_string(format) << ", scale 2^" << scale_log2 << ", " << describe(x));
        CHECK(from_histogram({&x, 1}, format, scale_log2) == one_by_one({&x, 1}, format, scale_log2));
      }
    }
  }
}

TEST_CASE("what-if counts say what the library's own rounding does", "[what_if]") {
  for (const FloatFormat& format : formats_under_test()) {
    const std::vector<float> values = adversarial_floats(format);
    std::int64_t nonzero = 0, flushed = 0, beyond = 0;
    for (const float x : values) {
      if (!std::isfinite(x) || x == 0) continue;
      const float cast = round(x, Quantizer{format});
      ++nonzero;
      flushed += cast == 0 ? 1 : 0;
      beyond += std::isfinite(cast) ? 0 : 1;
    }
    INFO(to_string(format));
    const WhatIf counted = from_histogram(values, format, 0);
    CHECK(counted.nonzero == nonzero);
    CHECK(counted.flushed == flushed);
    if (format.specials != Specials::finite_only) CHECK(counted.overflow == beyond);
  }
}

TEST_CASE("absurd scales flush or overflow everything", "[what_if]") {
  const std::vector<float> values{0x1p-149f, -1.0f, 0x1.fffffep127f, 0.0f, INFINITY};
  CHECK(from_histogram(values, fp16, INT_MIN).flushed == 3);
  CHECK(from_histogram(values, fp16, INT_MAX).overflow == 3);
  CHECK(from_histogram(values, fp16, INT_MAX).scale_log2 == INT_MAX);
}

TEST_CASE("binades may lie outside of float32's", "[what_if]") {
  const std::vector<float> values = boundaries_at(fp16, 0);
  ExponentHistogram histogram;
  histogram.add(values);
  for (const int moved : {-1000, -150, 0, 1, 300}) {
    const BinadeRange range{ExponentHistogram::first_exponent + moved, histogram.counts().binades};
    WhatIf expected = what_if(histogram, 0);
    expected.scale_log2 = -moved;
    expected.elements = expected.nonzero;
    CHECK(what_if(range, fp16, -moved) == expected);
    CHECK(what_if(range, fp16, INT_MIN).flushed == expected.nonzero);
    CHECK(what_if(range, fp16, INT_MAX).overflow == expected.nonzero);
  }
  CHECK(what_if(BinadeRange{}, fp16, 0) == WhatIf{});
}

TEST_CASE("fractions are of the nonzero finite numbers", "[what_if]") {
  const std::vector<float> values{0x1p-30f, 0x1p-20f, 1.0f, 1e6f, 0.0f, -0.0f, INFINITY, NAN};
  const WhatIf result = from_histogram(values, fp16, 0);
  CHECK(result.elements == 8);
  CHECK(result.nonzero == 4);
  CHECK(result.flushed_fraction() == 0.25);
  CHECK(result.subnormal_fraction() == 0.25);
  CHECK(result.overflow_fraction() == 0.25);
  CHECK(result.of_all(result.flushed) == 0.125);
  CHECK(WhatIf{}.flushed_fraction() == 0);
  CHECK(WhatIf{}.of_all(0) == 0);
}

}  // namespace
}  // namespace halfscope::what_if_test
