// The formats of IEEE P3109: every code of every format that FP32 holds, by the rule of its tables.
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>

#include <fmt/format.h>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope::p3109_test {
namespace {

/// K bits, precision P, signed or not, extended or finite.
struct Parameters {
  int width, precision;
  bool is_signed, is_extended;

  [[nodiscard]] std::string name() const {
    return fmt::format("p3109_k{}p{}{}{}", width, precision, is_signed ? 's' : 'u', is_extended ? 'e' : 'f');
  }
};

/// The table's rule: zero, NaN and infinity have one place each; all else is a significand and an exponent.
double number_of(std::uint32_t code, const Parameters& p) {
  const std::uint32_t codes = 1u << p.width, half = codes / 2;
  const std::uint32_t nan = p.is_signed ? half : codes - 1, infinity = p.is_signed ? half - 1 : codes - 2;
  if (code == nan) return NAN;
  if (p.is_signed && code > half) return -number_of(code - half, p);
  if (p.is_extended && code == infinity) return INFINITY;
  const int trailing = p.precision - 1, bias = 1 << (p.width - p.precision - (p.is_signed ? 1 : 0));
  const int field = static_cast<int>(code >> trailing);
  const double fraction = std::ldexp(static_cast<double>(code & ((1u << trailing) - 1)), -trailing);
  return field == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, field - bias);
}

/// Every code there and back; between two neighbours the midpoint goes to the even code.
std::uint32_t count_wrong(const Parameters& p) {
  const FloatFormat format = parse_format(p.name());
  std::uint32_t wrong = 0;
  for (std::uint32_t code = 0; code < 1u << p.width; ++code) {
    const double expected = number_of(code, p);
    const float value = decode(code, format);
    const bool is_right = std::isnan(expected) ? std::isnan(value) : double{value} == expected;
    wrong += is_right && encode(value, format) == code ? 0u : 1u;
    const double next = code + 1 < 1u << p.width ? number_of(code + 1, p) : NAN;
    if (!(expected >= 0) || !std::isfinite(next)) continue;
    const auto middle = static_cast<float>((expected + next) / 2);
    wrong += encode(round(middle, {format}), format) == code + code % 2 ? 0u : 1u;
  }
  return wrong;
}

TEST_CASE("all codes of all P3109 formats within FP32 follow the rule of their tables", "[format][p3109]") {
  int tables = 0;
  std::uint32_t codes = 0;
  for (int width = 3; width <= 16; ++width) {
    for (const bool is_signed : {true, false}) {
      const int most_precision = is_signed ? width - 1 : width;
      for (int precision = std::max(1, width - (is_signed ? 7 : 6)); precision <= most_precision;
           ++precision) {
        for (const bool is_extended : {true, false}) {
          const Parameters parameters{width, precision, is_signed, is_extended};
          INFO(parameters.name());
          CHECK(count_wrong(parameters) == 0);
          ++tables;
          codes += 1u << width;
        }
      }
    }
  }
  CHECK(tables == 342);
  CHECK(codes > 3'000'000);
}

}  // namespace
}  // namespace halfscope::p3109_test
