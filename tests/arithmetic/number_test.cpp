// The scalar type: its operators against the operations, and its limits against the codes of each format.
#include <halfscope/arithmetic/number.hpp>

#include <sstream>
#include <utility>

#include "tests/arithmetic/operation_cases.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::number_test {
namespace {

using Half = Number<Quantizer{fp16}>;
static_assert(sizeof(Half) == sizeof(float) && std::is_trivially_copyable_v<Half>);
static_assert(Half(65519.0f) == std::numeric_limits<Half>::max(), "works at compile time");

/// Calls check.template operator()<q>() for every rounding without random bits, and both overflow policies.
template <FloatFormat format, typename Check>
void for_quantizers(Check check) {
  [&]<std::size_t... r>(std::index_sequence<r...>) {
    (check.template operator()<Quantizer{format, static_cast<Rounding>(r)}>(), ...);
    (check.template operator()<Quantizer{format, static_cast<Rounding>(r), Overflow::saturate}>(), ...);
  }
  (std::make_index_sequence<6>{});
}

/// Each costs seconds of compilation; the formats behind differ from these in their bits alone.
constexpr std::size_t compiled_formats = 7;
static_assert(format_catalogue[compiled_formats - 1].format == fp8_e4m3fnuz);

/// The same for the first formats of the catalogue.
template <typename Check>
void for_catalogue(Check check) {
  [&]<std::size_t... f>(std::index_sequence<f...>) {
    (for_quantizers<format_catalogue[f].format>(check), ...);
  }
  (std::make_index_sequence<compiled_formats>{});
}

template <Quantizer q>
bool operators_are_operations(float x, float y, float z) {
  const Number<q> a(x), b(y), c(z);
  const auto u = static_cast<float>(a), v = static_cast<float>(b), w = static_cast<float>(c);
  const auto same = [](Number<q> number, const Flagged& expected) {
    return same_bits(static_cast<float>(number), expected.value);
  };
  return same(a + b, add(u, v, q)) && same(a - b, sub(u, v, q)) && same(a * b, mul(u, v, q)) &&
         same(a / b, div(u, v, q)) && same(sqrt(a), sqrt(u, q)) && same(fma(a, b, c), fma(u, v, w, q)) &&
         same(remainder(a, b), rem(u, v, q)) && (a == b) == equal(u, v).value &&
         (a < b) == less(u, v).value && (a <= b) == less_equal(u, v).value;
}

TEST_CASE("operators are the operations, for random operands in every catalogue format", "[number]") {
  for_catalogue([]<Quantizer q>() {
    bool right = true;
    for (std::uint64_t i = 0; i < 3000 && right; ++i) {
      const Operands x = random_operands(q.format, i, 31);
      right = operators_are_operations<q>(x[0], x[1], x[2]);
      INFO(to_string(q) << " " << describe(x[0]) << ", " << describe(x[1]) << ", " << describe(x[2]));
      CHECK(right);
    }
  });
}

TEST_CASE("operators are the operations, for hard operands in every catalogue format", "[number]") {
  for_catalogue([]<Quantizer q>() {
    bool right = true;
    const std::vector<float> values = hard_values(q.format);
    for (std::size_t i = 0; i < values.size() * values.size() && right; ++i) {
      const float a = values[i / values.size()], b = values[i % values.size()];
      right = operators_are_operations<q>(a, b, -a);
      INFO(to_string(q) << " " << describe(a) << ", " << describe(b));
      CHECK(right);
    }
  });
}

TEST_CASE("operators are the operations, for all FP8 pairs", "[number]") {
  const auto check = []<Quantizer q>() {
    bool right = true;
    const std::vector<float> values = all_values(q.format);
    for (const float a : values) {
      for (const float b : values) right = right && operators_are_operations<q>(a, b, a);
    }
    INFO(to_string(q));
    CHECK(right);
  };
  for_quantizers<fp8_e4m3>(check);
  for_quantizers<fp8_e5m2>(check);
}

/// Products and quotients whose float is subnormal and would be rounded twice.
TEST_CASE("tiny results of formats with FP32's exponents are rounded once", "[number]") {
  const auto check = []<Quantizer q>() {
    bool right = true;
    for (std::uint64_t i = 0; i < 100'000 && right; ++i) {
      const RandomBlock random = RandomStream{5}.block(i);
      const float a = from_bits((random[0] & 0x3FFFFFu) | 0x20000000u);  // about 2^-63
      const float b = from_bits((random[1] & 0x9FFFFFFu) | 0x1C000000u);
      right = operators_are_operations<q>(a, b, 0) && operators_are_operations<q>(a * a, 1 / b, 0);
      INFO(to_string(q) << " " << describe(a) << ", " << describe(b));
      CHECK(right);
    }
  };
  check.operator()<Quantizer{bf16}>();
  check.operator()<Quantizer{tf32}>();
  check.operator()<Quantizer{FloatFormat{8, 2}}>();
}

TEST_CASE("numbers are converted with one rounding", "[number]") {
  CHECK(static_cast<float>(Half(2049)) == 2048);
  CHECK(static_cast<float>(Half(0.1)) == 0x1.998p-4f);
  // Above the midpoint 1 + 2^-11 by less than a float can hold.
  CHECK(static_cast<float>(Half(1 + 0x1p-11 + 0x1p-40)) == 1 + 0x1p-10f);
  CHECK(static_cast<float>(Half(1 + 0x1p-11)) == 1);
  CHECK(static_cast<float>(Half(-0x1p-1070)) == 0);
  CHECK(signbit(Half(-0x1p-1070)));
  CHECK(isinf(Half(1e300)));
  CHECK(isnan(Half(std::numeric_limits<double>::quiet_NaN())));
  CHECK(static_cast<double>(Half(-0.0)) == 0);
  CHECK(static_cast<int>(Half(-7.9f)) == -7);
  using Bfloat = Number<Quantizer{bf16}>;
  CHECK(static_cast<float>(Bfloat(Half(1 + 0x1p-10f))) == 1);
  CHECK(Half::from_code(0x3C01).code() == 0x3C01);
  CHECK(Half::from_code(0x7C01).code() == 0x7E00);
}

TEST_CASE("comparison, absolute value, minimum and maximum", "[number]") {
  const Half nan = std::numeric_limits<Half>::quiet_NaN(), zero, one(1), minus_zero = -zero;
  CHECK(zero == minus_zero);
  CHECK(signbit(minus_zero));
  CHECK_FALSE(signbit(abs(minus_zero)));
  CHECK(abs(-one) == one);
  CHECK(nan != nan);
  CHECK_FALSE((nan < one || nan > one));
  CHECK(min(one, -one) == -one);
  CHECK(max(one, -one) == one);
  CHECK(min(nan, one) == one);
  CHECK(min(one, nan) == one);
  CHECK(max(nan, one) == one);
  CHECK(max(one, nan) == one);
  CHECK(isnan(min(nan, nan)));
  CHECK(signbit(min(zero, minus_zero)));
  CHECK_FALSE(signbit(max(minus_zero, zero)));
  CHECK((-nan).code() == nan.code());
}

TEST_CASE("numbers are printed as floats are", "[number]") {
  CHECK(fmt::format("{} {:.3f} {:>6}", Half(0.5), Half(0.1), Half(-2)) == "0.5 0.100     -2");
  std::ostringstream out;
  out << Half(1.5);
  CHECK(out.str() == "1.5");
}

/// Largest, smallest and next numbers, by looking at every code.
template <FloatFormat format>
void check_limits() {
  using Limits = std::numeric_limits<Number<Quantizer{format}>>;
  float largest = 0, smallest = 1, smallest_normal = 1, next_to_one = 2;
  const int codes = 1 << (code_width(format) - 1);
  for (int code = 1; code < codes; ++code) {
    const float x = decode(static_cast<std::uint32_t>(code), format);
    if (!std::isfinite(x)) continue;
    largest = std::max(largest, x);
    smallest = std::min(smallest, x);
    if ((code >> format.mantissa_bits) > 0) smallest_normal = std::min(smallest_normal, x);
    if (x > 1) next_to_one = std::min(next_to_one, x);
  }
  INFO(to_string(format));
  CHECK(static_cast<float>(Limits::max()) == largest);
  CHECK(static_cast<float>(Limits::lowest()) == -largest);
  CHECK(static_cast<float>(Limits::min()) == smallest_normal);
  CHECK(static_cast<float>(Limits::denorm_min()) == smallest);
  CHECK(static_cast<float>(Limits::epsilon()) == next_to_one - 1);
  CHECK(Limits::max_exponent == std::ilogb(largest) + 1);
  CHECK(Limits::min_exponent == std::ilogb(smallest_normal) + 1);
  CHECK(Limits::max_exponent10 == static_cast<int>(std::floor(std::log10(double{largest}))));
  CHECK(Limits::min_exponent10 == static_cast<int>(std::ceil(std::log10(double{smallest_normal}))));
  CHECK(std::isinf(static_cast<float>(Limits::infinity())) == Limits::has_infinity);
  CHECK(std::isnan(static_cast<float>(Limits::quiet_NaN())) == Limits::has_quiet_NaN);
}

TEST_CASE("numeric_limits are those of the codes, in every catalogue format", "[number]") {
  [&]<std::size_t... f>(std::index_sequence<f...>) {
    (check_limits<format_catalogue[f + 1].format>(), ...);  // all but fp32, which has 2^32 codes
  }
  (std::make_index_sequence<format_catalogue.size() - 1>{});
  using Limits = std::numeric_limits<Half>;
  CHECK((Limits::digits == 11 && Limits::digits10 == 3 && Limits::max_digits10 == 5));
  CHECK((Limits::is_iec559 && !std::numeric_limits<Number<Quantizer{fp8_e4m3}>>::is_iec559));
  CHECK_FALSE(std::numeric_limits<Number<Quantizer{fp8_e4m3}>>::has_infinity);
  CHECK(static_cast<float>(Limits::round_error()) == 0.5f);
  CHECK(std::numeric_limits<Number<Quantizer{fp16, Rounding::up}>>::round_style ==
        std::round_toward_infinity);
}

TEST_CASE("numeric_limits of fp32 are those of float", "[number]") {
  using Ours = std::numeric_limits<Number<Quantizer{fp32}>>;
  using Float = std::numeric_limits<float>;
  CHECK((Ours::digits == Float::digits && Ours::digits10 == Float::digits10));
  CHECK((Ours::max_digits10 == Float::max_digits10 && Ours::min_exponent == Float::min_exponent));
  CHECK((Ours::max_exponent == Float::max_exponent && Ours::max_exponent10 == Float::max_exponent10));
  CHECK((Ours::min_exponent10 == Float::min_exponent10 && Ours::is_iec559 && Ours::has_infinity));
  CHECK(same_bits(static_cast<float>(Ours::max()), Float::max()));
  CHECK(same_bits(static_cast<float>(Ours::min()), Float::min()));
  CHECK(same_bits(static_cast<float>(Ours::denorm_min()), Float::denorm_min()));
  CHECK(same_bits(static_cast<float>(Ours::epsilon()), Float::epsilon()));
}

}  // namespace
}  // namespace halfscope::number_test
