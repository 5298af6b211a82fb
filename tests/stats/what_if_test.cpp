// The what-if counts against rounding every number, scaled, one by one.
#include <halfscope/stats/what_if.hpp>

#include <climits>

#include <halfscope/format/catalogue.hpp>

#include "tests/reference/rounding.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope {
namespace {

WhatIf one_by_one(std::span<const float> values, int scale_log2) {
  WhatIf result{.scale_log2 = scale_log2, .elements = static_cast<std::int64_t>(values.size())};
  for (const float x : values) {
    if (!std::isfinite(x) || x == 0) continue;
    ++result.nonzero;
    const double cast = std::abs(reference::round(std::ldexp(double{x}, scale_log2), {fp16}));
    result.flushed += cast == 0 ? 1 : 0;
    result.subnormal += cast != 0 && cast < 0x1p-14 ? 1 : 0;
    result.overflow += std::isinf(cast) ? 1 : 0;
  }
  return result;
}

WhatIf from_histogram(std::span<const float> values, int scale_log2) {
  ExponentHistogram histogram;
  histogram.add(values);
  return what_if(histogram, scale_log2);
}

/// The boundaries of FP16 divided by 2^scale_log2, each with its FP32 neighbours, of either sign.
std::vector<float> boundaries_at(int scale_log2) {
  std::vector<float> values;
  for (const double edge :
       {0x1p-25, 0x1p-24, 0x1.ffcp-15, 0x1.ff8p-15, 0x1p-14, 65504.0, 65519.99609375, 65520.0, 65536.0}) {
    const auto x = static_cast<float>(std::ldexp(edge, -scale_log2));
    for (const float near : {std::nextafter(x, 0.0f), x, std::nextafter(x, INFINITY)}) {
      values.push_back(near);
      values.push_back(-near);
    }
  }
  return values;
}

TEST_CASE("what-if counts are exact at every scale", "[what_if]") {
  std::vector<float> values = boundary_floats(fp16);
  for (int scale_log2 = -8; scale_log2 <= 32; ++scale_log2) {
    const std::vector<float> edges = boundaries_at(scale_log2);
    values.insert(values.end(), edges.begin(), edges.end());
  }
  const std::vector<float> subnormals = boundary_floats(fp32);
  values.insert(values.end(), subnormals.begin(), subnormals.end());
  const std::vector<float> random = random_floats(20'000);
  values.insert(values.end(), random.begin(), random.end());
  for (int scale_log2 = -200; scale_log2 <= 200; ++scale_log2) {
    INFO("scale 2^" << scale_log2);
    CHECK(from_histogram(values, scale_log2) == one_by_one(values, scale_log2));
  }
}

TEST_CASE("what-if counts are exact for each number by itself", "[what_if]") {
  for (int scale_log2 = -8; scale_log2 <= 32; ++scale_log2) {
    for (const float x : boundaries_at(scale_log2)) {
      INFO("scale 2^" << scale_log2 << ", " << describe(x));
      CHECK(from_histogram({&x, 1}, scale_log2) == one_by_one({&x, 1}, scale_log2));
    }
  }
}

TEST_CASE("absurd scales flush or overflow everything", "[what_if]") {
  const std::vector<float> values{0x1p-149f, -1.0f, 0x1.fffffep127f, 0.0f, INFINITY};
  CHECK(from_histogram(values, INT_MIN).flushed == 3);
  CHECK(from_histogram(values, INT_MAX).overflow == 3);
  CHECK(from_histogram(values, INT_MAX).scale_log2 == INT_MAX);
}

TEST_CASE("fractions are of the nonzero finite numbers", "[what_if]") {
  const std::vector<float> values{0x1p-30f, 0x1p-20f, 1.0f, 1e6f, 0.0f, -0.0f, INFINITY, NAN};
  const WhatIf result = from_histogram(values, 0);
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
}  // namespace halfscope
