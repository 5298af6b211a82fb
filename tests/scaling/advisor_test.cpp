// Windows against trying every scale on every element, and advice whose answer is worked out by hand.
#include <halfscope/scaling/advisor.hpp>

#include <cmath>

#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/stats/what_if.hpp>

#include "tests/reference/rounding.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::advisor_test {
namespace {

TensorFit fit_of(std::string name, std::span<const float> values, const FloatFormat& format = fp16,
                 const AdvisorOptions& options = {}) {
  ExponentHistogram histogram(format);
  histogram.add(values);
  return fit_tensor(std::move(name), histogram, options);
}

/// Lower end by trying every scale, upper end by rounding every element at every scale.
ScaleWindow ends_by_trial(std::span<const float> values, const FloatFormat& format, double tolerance) {
  const double largest = reference::limits(format).max_finite;
  FloatFormat wider = format;
  ++wider.exponent_bits;
  wider.specials = Specials::ieee;
  ExponentHistogram histogram(format);
  histogram.add(values);
  ScaleWindow ends{1000, -1000};
  for (int scale_log2 = -300; scale_log2 <= 300; ++scale_log2) {
    std::int64_t overflow = 0;
    for (const float x : values) {
      if (x == 0 || !std::isfinite(x)) continue;
      const double scaled = std::abs(std::ldexp(double{x}, scale_log2));
      overflow += reference::round(scaled, {wider}) > largest ? 1 : 0;
    }
    if (flushed_magnitude(histogram, scale_log2) <= tolerance) ends.low = std::min(ends.low, scale_log2);
    if (overflow == 0) ends.high = std::max(ends.high, scale_log2);
  }
  return ends;
}

TEST_CASE("the ends of a window are where trying every scale finds them", "[advisor]") {
  const RandomStream stream{.seed = 9};
  for (const char* name : {"fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "e3m4f", "fp16_ftz"}) {
    const FloatFormat format = parse_format(name);
    for (const double tolerance : {0.0, 0.01, 0.2}) {
      for (std::uint64_t tensor = 0; tensor < 6; ++tensor) {
        std::vector<float> values{0, NAN, -INFINITY, -0.0f};
        const double middle = 200.0 * stream.uniform(tensor) - 110,
                     spread = 8.0 * static_cast<double>(tensor);
        for (std::uint64_t i = 0; i < 500; ++i) {
          values.push_back(static_cast<float>(std::exp2(middle + spread * (stream.uniform(1000 + i) - 0.5))));
        }
        INFO(name << ", tolerance " << tolerance << ", spread 2^" << spread);
        const TensorFit fit = fit_of("t", values, format, {.tolerance = tolerance});
        const ScaleWindow ends = ends_by_trial(values, format, tolerance);
        CHECK(fit.underflow_low == ends.low);
        CHECK(fit.overflow_high == ends.high);
        CHECK(fit.window().has_value() == (ends.low <= std::min(ends.high, largest_scale_log2)));
        CHECK(fit.nonfinite == 2);
      }
    }
  }
}

TEST_CASE("a tensor of equal numbers fits from where they become subnormal to where they overflow",
          "[advisor]") {
  for (const int exponent : {-40, -24, -3, 9}) {
    const std::vector<float> values(7, std::ldexp(1.0f, exponent));
    CHECK(fit_of("t", values).window() == ScaleWindow{-24 - exponent, 15 - exponent});
  }
}

TEST_CASE("small numbers count by their sum", "[advisor]") {
  // A thousand elements of 2^-35 have a sum of 1000 / 2^10 of one of 2^-25, and 1000 / 4^10 of its energy.
  std::vector<float> values(1000, 0x1p-35f);
  values.push_back(0x1p-25f);
  const double sum = 1000.0 / 2024.0;
  CHECK(fit_of("t", values, fp16, {.tolerance = 1.001 * sum}).underflow_low == 1);
  CHECK(fit_of("t", values, fp16, {.tolerance = 0.999 * sum}).underflow_low == 11);
}

TEST_CASE("a loss that averages over 16,384 of 4,096 words does not fit at scale 1", "[advisor]") {
  // Per word p - 1 of the right one, and p of the others, of a model that knows nothing yet.
  const auto gradient = [](float words) {
    std::vector<float> values(4095, 1 / (4096 * words));
    values.push_back(-4095 / (4096 * words));
    return values;
  };
  const auto says_scale_1 = [&](float words) {
    const std::string verdict = advise(std::vector{fit_of("output", gradient(words))}, fp16).verdict;
    return verdict.find("scale 1 would do too") != std::string::npos;
  };
  CHECK(says_scale_1(2048));
  CHECK_FALSE(says_scale_1(8192));  // half of them is flushed
  CHECK_FALSE(says_scale_1(16384));
  CHECK(fit_of("output", gradient(2048)).underflow_low == -1);
  CHECK(fit_of("output", gradient(16384)).underflow_low == 2);
  ExponentHistogram histogram(fp16);
  histogram.add(gradient(16384));
  CHECK(underflow_error(histogram, 0) < 0.05);  // the norm does not tell
}

TEST_CASE("the step that asks for the largest scale decides a tensor's fit", "[advisor]") {
  const TensorFit early = fit_of("t", std::vector<float>{0x1p-4f}),
                  late = fit_of("t", std::vector<float>{0x1p-12f}),
                  nothing = fit_of("t", std::vector<float>{0, NAN});
  for (const auto& steps : {std::vector{early, late, nothing}, std::vector{nothing, late, early}}) {
    const TensorFit fit = merge_fits(steps);
    CHECK(fit.window() == ScaleWindow{-12, 19});
    CHECK(fit.nonfinite == 1);
    CHECK(fit.fits_bf16);
  }
  CHECK(merge_fits(std::vector{nothing, nothing}).any_scale);
  CHECK_THROWS_AS(merge_fits({}), InvalidArgument);
}

/// A tensor that is 2^low at its smallest and 2^high at its largest; FP16 keeps 2^-24 and 2^15.
std::vector<float> between(int low, int high) {
  return {std::ldexp(1.0f, low), 0, -std::ldexp(1.0f, high)};
}

/// Under which no element of it may be flushed.
constexpr AdvisorOptions strict{.tolerance = 0};

TensorFit strict_fit(std::string name, std::span<const float> values) {
  return fit_of(std::move(name), values, fp16, strict);
}

TEST_CASE("scale 1 is offered where its half and its double fit too", "[advisor]") {
  for (const int low : {-9, -2, -1, 0, 1}) {
    for (const int high : {-1, 0, 1, 15}) {
      if (low > high) continue;
      const TensorFit fit = strict_fit("a", between(-24 - low, 15 - high));
      const Advice advice = advise(std::vector{fit}, fp16, strict);
      REQUIRE(advice.joint == ScaleWindow{low, high});
      INFO("2^" << low << " to 2^" << high);
      CHECK(advice.fits_unscaled == (low < 0 && high > 0));
      const bool is_said = advice.verdict.find("; scale 1 would do too\n") != std::string::npos;
      CHECK(is_said == (advice.fits_unscaled && advice.recommended != 0));
    }
  }
}

TEST_CASE("the joint window is the intersection, and the largest scale with headroom is chosen",
          "[advisor]") {
  const std::vector<TensorFit> tensors{strict_fit("a", between(-30, -4)), strict_fit("b", between(-27, 2)),
                                       strict_fit("zero", std::vector<float>{0, -0.0f})};
  CHECK(tensors[0].window() == ScaleWindow{6, 19});
  CHECK(tensors[1].window() == ScaleWindow{3, 13});
  CHECK(tensors[2].any_scale);
  CHECK_FALSE(tensors[2].window().has_value());
  const Advice advice = advise(tensors, fp16, strict);
  CHECK(advice.joint == ScaleWindow{6, 13});
  CHECK(advice.recommended == 10);
  CHECK(advice.outliers.empty());
  CHECK(advice.first_hurt == std::vector<std::string>{"a"});
  check_says(advice.verdict,
             {"Loss scale 2^10: torch.amp.GradScaler(init_scale=2.0**10)\n  Why: it fits all "
              "3 tensors, as 2^6 to 2^13 do.",
              "underflow costs a more than 0 % of its sum of magnitudes", "leaves a factor of 2^3"});
  CHECK(advise(tensors, fp16, {.tolerance = 0, .headroom_log2 = 0}).recommended == 13);
  CHECK(advise(tensors, fp16, {.tolerance = 0, .headroom_log2 = 7}).recommended == 6);
  CHECK(advise(tensors, fp16, {.tolerance = 0, .headroom_log2 = 20}).recommended ==
        6);  // the window has no more room
  CHECK(advise(tensors, fp16, {.tolerance = 0, .ceiling_log2 = 8}).recommended == 8);
  CHECK(advise(tensors, fp16, {.tolerance = 0, .ceiling_log2 = 2}).recommended == 6);
}

TEST_CASE("a binade below overflow is left free, however narrow the window", "[advisor]") {
  for (int width = 0; width < 6; ++width) {
    const TensorFit fit = strict_fit("a", between(-24 - 3, 15 - 3 - width));  // fits 2^3 .. 2^(3 + width)
    REQUIRE(fit.window() == ScaleWindow{3, 3 + width});
    const Advice advice = advise(std::vector{fit}, fp16, strict);
    INFO(width);
    CHECK(advice.recommended == (width == 0 ? 2 : std::max(3, width)));
    CHECK(advise(std::vector{fit}, fp16, {.tolerance = 0, .headroom_log2 = 0}).recommended == 3 + width);
    if (width == 0)
      check_says(advice.verdict,
                 {"Loss scale 2^2: ", "2^3 alone fits the tensor", "no room above the largest value",
                  "At 2^2 underflow costs a more than 0 % of its sum of magnitudes"});
  }
}

TEST_CASE("where none fits all, nothing overflows at a scale that fits half of the tensors", "[advisor]") {
  const TensorFit usual = strict_fit("usual", between(-20, 5));    // 2^-4 .. 2^10
  const TensorFit faint = strict_fit("faint", between(-60, -50));  // from 2^36 on
  const Advice advice = advise(std::vector{usual, usual, faint}, fp16, strict);
  CHECK_FALSE(advice.joint);
  CHECK(advice.recommended == 9);
  REQUIRE(advice.outliers.size() == 1);
  CHECK(advice.outliers[0].tensor.name == "faint");
  check_says(advice.verdict,
             {"Loss scale 2^9", "suits 2 of 3 tensors", "nothing overflows up to a factor of 2^1"});
  // Where most need more, one loud tensor gets a scale of its own instead.
  const Advice loud = advise(std::vector{usual, faint, faint}, fp16, strict);
  CHECK(loud.recommended > 35);
  CHECK(loud.outliers[0].tensor.name == "usual");
}

TEST_CASE("tiny tensors do not get an absurd scale", "[advisor]") {
  const Advice advice = advise(std::vector{strict_fit("a", between(-80, -75))}, fp16, strict);
  CHECK(advice.joint == ScaleWindow{56, 90});
  CHECK(advice.recommended == 56);
  const FloatFormat e7m8 = parse_format("e7m8");
  const Advice wide = advise(std::vector{fit_of("a", between(-30, -29), e7m8)}, e7m8);
  CHECK(wide.recommended == 24);
  check_says(wide.verdict, {"Loss scale 2^24; scale 1 would do too\n  Why: "});
}

TEST_CASE("no scale beyond FP32's largest is recommended", "[advisor]") {
  const TensorFit tiny = fit_of("tiny", std::vector(3, 1e-45f), fp8_e4m3);
  REQUIRE(tiny.underflow_low > largest_scale_log2);
  REQUIRE(tiny.underflow_low <= tiny.overflow_high);
  CHECK_FALSE(tiny.window());
  const TensorFit usual = fit_of("usual", std::vector(3, 1.0f), fp8_e4m3);
  const Advice both = advise(std::vector{usual, tiny}, fp8_e4m3);
  REQUIRE(both.outliers.size() == 1);
  CHECK(both.outliers[0].remedy == Remedy::fp32_island);
  CHECK_FALSE(both.outliers[0].scale_log2);
  check_says(both.verdict, {"keep in FP32: tiny (needs 2^140 against underflow, and FP32 ends at 2^127)"});
  CHECK_FALSE(advise(std::vector{tiny}, fp8_e4m3).recommended);
  const TensorFit small = fit_of("small", std::vector(3, 0x1p-126f), fp8_e4m3);
  REQUIRE(small.window());
  CHECK(small.window()->high == largest_scale_log2);
  CHECK(*advise(std::vector{small}, fp8_e4m3).recommended <= largest_scale_log2);
}

TEST_CASE("a format with the exponents of FP32 needs no loss scale", "[advisor]") {
  for (const char* name : {"fp32", "bf16", "tf32", "e8m3"}) {
    INFO(name);
    const FloatFormat format = parse_format(name);
    const Advice advice = advise(
        std::vector{fit_of("a", between(-30, -29), format), fit_of("b", between(-9, 4), format)}, format);
    CHECK(advice.recommended == 0);
    CHECK(advice.joint->contains(0));
    CHECK(advice.verdict ==
          "No loss scale is needed: " + std::string(name) +
              " has the exponents of FP32\n  Why: at S = 1 underflow costs "
              "each of 2 tensors at most 20 % of its sum of magnitudes, and nothing overflows");
  }
  const Advice tiny = advise(std::vector{fit_of("a", between(-140, -139), bf16)}, bf16);
  CHECK(tiny.recommended > 0);
  check_says(tiny.verdict, {"it fits the tensor, as 2^"});
}

TEST_CASE("where no single scale fits, each tensor left out gets its remedy", "[advisor]") {
  const std::vector<TensorFit> tensors{
      strict_fit("a", between(-30, -4)),
      strict_fit("b", between(-28, -2)),
      strict_fit("loud", between(-10, 14)),
      strict_fit("wide", between(-60, 10)),
      strict_fit("wider", std::vector<float>{0x1p-140f, 1.0f, 0x1.fffffep127f}),
      strict_fit("zero", std::vector<float>{0}),
      strict_fit("broken", std::vector<float>{0x1p-20f, INFINITY, NAN})};
  const Advice advice = advise(tensors, fp16, strict);
  CHECK_FALSE(advice.joint.has_value());
  CHECK(advice.first_hurt.empty());
  CHECK(advice.recommended == 14);  // a, b and broken fit in 2^6 .. 2^17
  REQUIRE(advice.outliers.size() == 3);
  CHECK(advice.outliers[0].tensor.name == "loud");
  CHECK(advice.outliers[0].remedy == Remedy::own_scale);
  CHECK(advice.outliers[0].scale_log2 == -2);  // the middle of 2^-14 .. 2^1
  CHECK(advice.outliers[1].tensor.name == "wide");
  CHECK(advice.outliers[1].remedy == Remedy::bf16_range);
  CHECK(advice.outliers[2].tensor.name == "wider");
  CHECK(advice.outliers[2].remedy == Remedy::fp32_island);
  check_says(advice.verdict, {"suits 4 of 7 tensors; no single scale fits all:\n  give a scale of its own to",
                              "loud (2^-2, of 2^-14 to 2^1)",
                              "BF16, whose range holds it unscaled, or in FP32: wide (needs 2^36",
                              "\n  keep in FP32: wider", "broken (2)"});
}

TEST_CASE("BF16 is offered where nothing overflows in it and underflow stays within the tolerance",
          "[advisor]") {
  const auto holds = [](std::vector<float> values) { return fit_of("t", values).fits_bf16; };
  CHECK(holds({0x1p-133f}));
  CHECK_FALSE(holds({0x1p-134f}));  // ties to zero
  CHECK(holds({0x1p-134f, 1}));
  CHECK(holds({0x1p-133f, 0x1.fep127f}));
  CHECK_FALSE(holds({0x1.ffp127f, 1}));  // ties to infinity
  CHECK(holds({0x1.fefffep127f, 1}));
}

TEST_CASE("no tensors, and none that asks for anything", "[advisor]") {
  check_says(advise({}, fp16).verdict, {"no tensor to judge"});
  const Advice advice =
      advise(std::vector{fit_of("z", std::vector<float>{0}), fit_of("n", std::vector{NAN})}, fp16);
  CHECK_FALSE(advice.joint.has_value());
  CHECK_FALSE(advice.recommended.has_value());
  check_says(advice.verdict, {"no tensor has a nonzero finite value", "n (1)"});
  const Advice hopeless = advise(std::vector{strict_fit("wide", between(-60, 10))}, fp16, strict);
  CHECK_FALSE(hopeless.recommended.has_value());
  check_says(hopeless.verdict, {"No scale fits:\n  keep in BF16", "wide"});
}

TEST_CASE("a sentence names no more tensors than one can read", "[advisor]") {
  std::vector<TensorFit> tensors;
  tensors.reserve(50);
  for (int i = 0; i < 50; ++i) tensors.push_back(strict_fit("t" + std::to_string(i), between(-60, 10)));
  const std::string verdict = advise(tensors, fp16, strict).verdict;
  check_says(verdict, {"t7", "and 42 more"});
  CHECK(verdict.find("t8 ") == std::string::npos);
}

}  // namespace
}  // namespace halfscope::advisor_test
