// The scalar rounding, for every format, rounding and overflow policy: against the definition, and by its
// properties.
#include <halfscope/format/round.hpp>

#include <algorithm>

#include "tests/reference/rounding.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope::round_test {
namespace {

static_assert(round(65519.996f, {fp16}) == 65504 && round(-65520, {fp16}) < -3e38f, "works at compile time");
static_assert(to_bits(round(-0x1p-25f, {fp16})) == sign_bit && round(0x1.8p-25f, {fp16}) == 0x1p-24f);
static_assert(round(464, {fp8_e4m3}) == 448 && to_bits(round(-464.5f, {fp8_e4m3})) == quiet_nan_bits);

constexpr std::uint32_t random_words[] = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};

std::vector<float> inputs_for(const FloatFormat& format) {
  std::vector<float> values = boundary_floats(format);
  const std::vector<float> random = random_floats(10'000);
  values.insert(values.end(), random.begin(), random.end());
  return values;
}

/// Reports the first input for which `holds` is false; a CHECK each would take minutes.
template <typename Predicate>
void check_all(const Quantizer& q, const std::vector<float>& values, Predicate holds) {
  const auto wrong = std::find_if_not(values.begin(), values.end(), holds);
  if (wrong == values.end()) return;
  INFO(to_string(q) << " of " << describe(*wrong) << " is " << describe(round(*wrong, q)));
  CHECK(wrong == values.end());
}

Quantizer mirrored(Quantizer q) {
  if (q.rounding == Rounding::up) {
    q.rounding = Rounding::down;
  } else if (q.rounding == Rounding::down) {
    q.rounding = Rounding::up;
  }
  return q;
}

TEST_CASE("rounding is what the definition says", "[round]") {
  std::vector<FloatFormat> formats = formats_under_test();
  std::ranges::copy(unsigned_formats_under_test(), std::back_inserter(formats));
  for (const FloatFormat& format : formats) {
    const std::vector<float> values = inputs_for(format);
    for (const Quantizer& q : quantizers_of(format)) {
      for (const std::uint32_t word : random_words) {
        check_all(q, values, [&](float x) {
          return same_bits(round(x, q, word), reference::round_to_float(double{x}, q, word));
        });
        if (q.rounding != Rounding::stochastic) break;
      }
    }
  }
}

TEST_CASE("rounding again changes nothing", "[round]") {
  for (const FloatFormat& format : formats_under_test()) {
    const std::vector<float> values = inputs_for(format);
    for (const Quantizer& q : quantizers_of(format)) {
      check_all(q, values, [&](float x) {
        const float once = round(x, q, 0x9E3779B9);
        return same_bits(round(once, q, 0xFFFFFFFF), once);
      });
    }
  }
}

TEST_CASE("a negated number rounds to the negated result, with up and down swapped", "[round]") {
  for (const FloatFormat& format : formats_under_test()) {
    const std::vector<float> values = inputs_for(format);
    for (const Quantizer& q : quantizers_of(format)) {
      check_all(q, values, [&](float x) {
        const float result = round(x, q);
        const float negated = round(-x, mirrored(q));
        const bool has_no_sign = std::isnan(result) || (result == 0 && !format.has_signed_zero());
        return same_bits(negated, has_no_sign ? result : -result);
      });
    }
  }
}

TEST_CASE("rounding is monotonic", "[round]") {
  for (const FloatFormat& format : formats_under_test()) {
    std::vector<float> values = inputs_for(format);
    std::erase_if(values, [](float x) { return std::isnan(x); });
    std::sort(values.begin(), values.end());
    for (const Quantizer& q : quantizers_of(format)) {
      float previous = -INFINITY;
      check_all(q, values, [&](float x) {
        const float result = round(x, q, 0x12345678);
        const bool in_order =
            std::isnan(result) || result >= previous;  // e4m3: NaN stands beyond the largest
        if (!std::isnan(result)) previous = result;
        return in_order;
      });
    }
  }
}

TEST_CASE("down and up enclose the number, and every rounding is one of them", "[round]") {
  for (const FloatFormat& format : formats_under_test()) {
    if (format.subnormals == Subnormals::flush_to_zero) continue;  // flushing may move either way
    const float largest = from_bits(format.max_finite_bits());
    std::vector<float> values = inputs_for(format);
    const bool one_zero = !format.has_signed_zero();
    std::erase_if(values,
                  [&](float x) { return !(std::abs(x) <= largest) || (one_zero && same_bits(x, -0.0f)); });
    for (const Quantizer& q : quantizers_of(format)) {
      check_all(q, values, [&](float x) {
        const float below = round(x, {format, Rounding::down});
        const float above = round(x, {format, Rounding::up});
        const float result = round(x, q, 0xDEADBEEF);
        const bool exact = same_bits(below, x) && same_bits(above, x) && same_bits(result, x);
        return exact || (below < x && x < above && (result == below || result == above));
      });
    }
  }
}

TEST_CASE("FP32 is the identity, but for NaNs", "[round]") {
  for (const float x : random_floats(100'000)) {
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::up, Rounding::stochastic}) {
      REQUIRE(
          same_bits(round(x, {fp32, rounding}, 0xFFFFFFFF), std::isnan(x) ? from_bits(quiet_nan_bits) : x));
    }
  }
}

TEST_CASE("every code of the narrow formats is kept, and midpoints go to the even code", "[round]") {
  for (const char* name :
       {"fp8_e4m3", "fp8_e5m2", "e4m3", "e5m2fn", "e2m1f", "e2m1fn", "e2m3f", "e3m2f", "fp8_e4m3fnuz",
        "fp8_e4m3b11fnuz", "p3109_k8p4se", "p3109_k7p2se", "p3109_k8p1se", "p3109_k4p1sf"}) {
    const FloatFormat format = parse_format(name);
    const unsigned codes = 1u << (1 + format.exponent_bits + format.mantissa_bits);
    for (unsigned code = 0; code < codes; ++code) {
      INFO(name << " code " << code);
      const auto value = static_cast<float>(reference::decode(code, format));
      for (const Quantizer& q : quantizers_of(format)) {
        if (std::isinf(value) && q.overflow == Overflow::saturate) continue;
        const float kept = round(value, q, 0xFFFFFFFF);
        CHECK((std::isnan(value) ? to_bits(kept) == quiet_nan_bits : same_bits(kept, value)));
      }
      const auto next = static_cast<float>(reference::decode(code + 1, format));
      if (value < 0 && !format.has_signed_zero()) continue;  // the tests above turn signs
      if ((code + 1) % (codes / 2) == 0 || !std::isfinite(value) || !std::isfinite(next)) continue;
      const float middle = (value + next) / 2;  // exact
      CHECK(same_bits(round(middle, {format}), code % 2 == 0 ? value : next));
      CHECK(same_bits(round(middle, {format, Rounding::nearest_away}), next));
      CHECK(same_bits(round(middle, {format, Rounding::to_odd}), code % 2 == 0 ? next : value));
      CHECK(same_bits(round(middle, {format, Rounding::toward_zero}), value));
      CHECK(same_bits(round(std::nextafter(middle, value), {format}), value));
      CHECK(same_bits(round(std::nextafter(middle, next), {format}), next));
    }
  }
}

TEST_CASE("overflow follows the rounding and the policy", "[round]") {
  const float inf = INFINITY;
  const auto fp16_to = [](float x, Rounding rounding) { return round(x, {fp16, rounding}, 0xFFFFFFFF); };
  CHECK(fp16_to(65519.996f, Rounding::nearest_even) == 65504);
  CHECK(fp16_to(65520, Rounding::nearest_even) == inf);
  CHECK(fp16_to(65520, Rounding::nearest_away) == inf);
  CHECK(fp16_to(-1e30f, Rounding::toward_zero) == -65504);
  CHECK(fp16_to(1e30f, Rounding::to_odd) == 65504);
  CHECK(fp16_to(65505, Rounding::up) == inf);
  CHECK(fp16_to(-1e30f, Rounding::up) == -65504);
  CHECK(fp16_to(-65505, Rounding::down) == -inf);
  CHECK(fp16_to(65535, Rounding::stochastic) == inf);
  CHECK(fp16_to(-inf, Rounding::toward_zero) == -inf);
  CHECK(round(-inf, {fp16, Rounding::up, Overflow::saturate}) == -65504);
  CHECK(round(1e30f, {fp8_e4m3, Rounding::nearest_even, Overflow::saturate}) == 448);
  CHECK(std::isnan(round(-inf, {fp8_e4m3})));
  CHECK(round(1e30f, {fp8_e4m3, Rounding::toward_zero}) == 448);
  CHECK(round(-inf, {parse_format("e2m1f")}) == -6);
}

TEST_CASE("flushing happens after rounding and keeps the sign", "[round]") {
  const Quantizer q{parse_format("fp16_ftz")};
  CHECK(round(0x1p-14f, q) == 0x1p-14f);
  CHECK(same_bits(round(-0x1.ff8p-15f, q), -0.0f));
  CHECK(round(0x1.ffcp-15f, q) == 0x1p-14f);  // half way to the smallest normal number: rounds up to it
  CHECK(same_bits(round(0x1.ffbffep-15f, q), 0.0f));
}

TEST_CASE("stochastic rounding goes up with the probability of the discarded fraction", "[round]") {
  const Quantizer q{fp16, Rounding::stochastic};
  const RandomStream stream{.seed = 7};
  constexpr int draws = 1 << 16;
  std::uint64_t index = 0;
  for (const float unit :
       {0x1p-24f, 0x1p-20f, 0x1p-10f, 32.0f}) {  // subnormal, subnormal, 1.x, the top binade
    const float base = unit == 0x1p-24f ? 0 : unit == 0x1p-20f ? 0x1p-19f : unit * 1024;
    const float spacing = unit == 0x1p-20f ? 0x1p-24f : unit;
    for (const float fraction : {0.03125f, 0.25f, 0.5f, 0.7109375f, 0.96875f}) {
      double ups = 0;
      for (int draw = 0; draw < draws; ++draw) {
        ups += round(base + fraction * spacing, q, stream.bits(index++)) > base ? 1 : 0;
      }
      const double sigma = std::sqrt(double{fraction} * (1 - double{fraction}) / draws);
      INFO("base " << base << ", fraction " << fraction);
      CHECK(std::abs(ups / draws - double{fraction}) < 4.5 * sigma);
    }
  }
}

TEST_CASE("stochastic rounding by a number of bits goes up as often as these bits say", "[round]") {
  for (const char* name : {"fp8_e4m3", "fp8_e5m2", "fp4_e2m1", "fp8_e4m3fnuz", "bf16"}) {
    const FloatFormat format = parse_format(name);
    const float above_one = 1 + std::ldexp(1.0f, -format.mantissa_bits);
    for (const int bits : {1, 2, 3, 8}) {
      const Quantizer q{format, Rounding::stochastic, Overflow::infinity, bits};
      const std::uint32_t words = 1u << bits;
      for (const double fraction : {0.0, 0.03125, 0.25, 0.34375, 0.5, 0.96875}) {
        const auto x = static_cast<float>(1 + fraction * (double{above_one} - 1));
        std::uint32_t ups = 0;
        for (std::uint32_t word = 0; word < words; ++word) {
          const float result = round(x, q, word << (32 - bits) | 0x9E37u);  // the low bits do not count
          ups += result == above_one ? 1 : 0;
          CHECK((result == above_one || result == 1));
        }
        INFO(to_string(q) << ", " << fraction);
        CHECK(ups == static_cast<std::uint32_t>(std::floor(std::ldexp(fraction, bits))));
      }
    }
  }
}

TEST_CASE("the random bits of stochastic rounding have exact boundaries", "[round]") {
  for (const FloatFormat& format : formats_under_test()) {
    const Quantizer q{format, Rounding::stochastic};
    const float largest = from_bits(format.max_finite_bits());
    for (const float x : inputs_for(format)) {
      const float down = round(x, {format, Rounding::toward_zero});
      REQUIRE((std::abs(x) > largest || same_bits(round(x, q, 0), down)));
      if (!(std::abs(x) <= largest) || down == x) continue;
      const float away = round(x, {format, std::signbit(x) ? Rounding::down : Rounding::up});
      const double fraction = (double{x} - double{down}) / (double{away} - double{down});
      if (format.subnormals == Subnormals::flush_to_zero || fraction < 0x1p-32) continue;
      INFO(to_string(q) << " of " << describe(x));
      const auto threshold =
          static_cast<std::uint64_t>(std::ldexp(1.0, 32) - std::floor(std::ldexp(fraction, 32)));
      REQUIRE(same_bits(round(x, q, 0xFFFFFFFF), away));
      REQUIRE(same_bits(round(x, q, static_cast<std::uint32_t>(threshold)), away));
      REQUIRE(same_bits(round(x, q, static_cast<std::uint32_t>(threshold - 1)), down));
    }
  }
}

}  // namespace
}  // namespace halfscope::round_test
