// Stored elements become floats: every code of every narrow type, and doubles rounded to odd by definition.
#include <halfscope/kernel/cast/convert.hpp>

#include <cmath>
#include <cstring>

#include <halfscope/core/isa.hpp>
#include <halfscope/format/catalogue.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/format/round.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope::widen_test {
namespace {

std::vector<float> widened(DType type, const void* elements, std::size_t count) {
  std::vector<float> values(count);
  widen(type, static_cast<const std::byte*>(elements), values);
  return values;
}

/// All codes of a type of one or two bytes, and their numbers from the definition of the format.
template <typename Code>
void check_all_codes(DType type, const FloatFormat& format) {
  std::vector<Code> codes(std::size_t{1} << (8 * sizeof(Code)));
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<Code>(i);
  const std::vector<float> values = widened(type, codes.data(), codes.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < codes.size(); ++i)
    wrong += same_bits(values[i], decode(codes[i], format)) ? 0u : 1u;
  CHECK(wrong == 0);
}

/// By definition: truncated to 24 bits, fewer below the normal numbers, and the last bit set if that lost
/// anything; out of range, the nearest finite number that is not zero.
float round_to_odd_slowly(double x) {
  if (std::isnan(x) || std::isinf(x) || x == 0) return static_cast<float>(x);
  const int exponent = std::max(std::ilogb(x), -126);
  // In units of the last place: exact, since the factor is a power of two.
  const double units = std::ldexp(std::abs(x), 23 - exponent);
  double kept = std::floor(units);
  if (kept != units && std::fmod(kept, 2) == 0) kept += 1;
  const double rounded = std::min(std::ldexp(kept, exponent - 23), 0x1.fffffep127);
  return static_cast<float>(std::copysign(rounded, x));
}

/// Doubles of every exponent, with fractions that end above, at and below the bits that FP32 keeps.
std::vector<double> doubles_of_every_kind() {
  std::vector<double> values{0.0, 0x1p-1074, 0x1p-1022, INFINITY, NAN, 0x1.fffffffffffffp1023};
  for (int exponent = -1074; exponent <= 1023; exponent += exponent >= -155 && exponent < 130 ? 1 : 23) {
    const double power = std::ldexp(1.0, exponent);
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::uint32_t bits = RandomStream{7}.bits(i);
      for (const double fraction :
           {0.0, bits % 4 * 0x1p-23, bits % 512 * 0x1p-24, (bits % 1024) * 0x1p-52, bits * 0x1p-32,
            0x1p-23 - 0x1p-52, 1 - 0x1p-23, 1 - 0x1p-24, 1 - 0x1p-25, 1 - 0x1p-52}) {
        values.push_back(power * (1 + fraction));
      }
    }
  }
  const std::size_t positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}

void on_every_isa(const std::function<void()>& check) {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(name_of(isa));
    check();
  }
}

TEST_CASE("every code of 8 and 16 bits widens to its number", "[kernel][widen]") {
  on_every_isa([] {
    check_all_codes<std::uint16_t>(DType::f16, fp16);
    check_all_codes<std::uint16_t>(DType::bf16, bf16);
    check_all_codes<std::uint8_t>(DType::f8_e4m3, fp8_e4m3);
    check_all_codes<std::uint8_t>(DType::f8_e5m2, fp8_e5m2);
  });
}

TEST_CASE("floats stay the bits they are", "[kernel][widen]") {
  const std::vector<float> values = boundary_floats(fp16);
  const std::vector<float> same = widened(DType::f32, values.data(), values.size());
  CHECK(std::memcmp(same.data(), values.data(), values.size() * sizeof(float)) == 0);
}

TEST_CASE("doubles are rounded to odd", "[kernel][widen]") {
  const std::vector<double> exact = doubles_of_every_kind();
  on_every_isa([&] {
    const std::vector<float> values = widened(DType::f64, exact.data(), exact.size());
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const float expected = round_to_odd_slowly(exact[i]);
      if (!same_but_nan_bits(values[i], expected)) {
        CAPTURE(exact[i], values[i], expected);
        FAIL_CHECK("rounded wrongly");
      }
    }
  });
}

TEST_CASE("a double rounded by way of a float is the double rounded", "[kernel][widen]") {
  const std::vector<double> exact = doubles_of_every_kind();
  const std::vector<float> values = widened(DType::f64, exact.data(), exact.size());
  for (const NamedFormat& entry : format_catalogue) {
    if (entry.format.mantissa_bits > 21) continue;  // fp32 needs more bits than it has
    INFO(entry.name);
    const Quantizer q{entry.format};
    const int lowest = entry.format.min_exponent() - entry.format.mantissa_bits;
    const double largest = from_bits(entry.format.max_finite_bits());
    for (std::size_t i = 0; i < exact.size(); ++i) {
      if (!std::isfinite(exact[i]) || std::abs(exact[i]) > largest) continue;
      const int last_place =
          exact[i] == 0 ? lowest : std::max(std::ilogb(exact[i]) - entry.format.mantissa_bits, lowest);
      const double nearest = std::ldexp(std::nearbyint(std::ldexp(exact[i], -last_place)), last_place);
      if (std::abs(nearest) > largest) continue;
      CAPTURE(exact[i]);
      REQUIRE(double{round(values[i], q)} == nearest);
    }
  }
}

TEST_CASE("widening takes elements at any address, and as many as there are", "[kernel][widen]") {
  on_every_isa([] {
    for (const std::size_t count : {0u, 1u, 2u, 7u, 31u, 1000u}) {
      std::vector<std::uint16_t> codes(count);
      for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<std::uint16_t>(77 * i + 3);
      std::vector<std::byte> shifted(1 + 2 * count);
      if (count > 0) std::memcpy(shifted.data() + 1, codes.data(), 2 * count);
      const std::vector<float> values = widened(DType::f16, shifted.data() + 1, count);
      for (std::size_t i = 0; i < count; ++i) REQUIRE(same_bits(values[i], decode(codes[i], fp16)));
    }
  });
}

}  // namespace
}  // namespace halfscope::widen_test
