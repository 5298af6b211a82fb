// The formats and numbers that the tests of rounding loop over.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <halfscope/core/random.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/format/catalogue.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

/// The catalogue, and formats at the limits of what eXmY can be.
[[nodiscard]] inline std::vector<FloatFormat> formats_under_test() {
  std::vector<FloatFormat> formats;
  for (const NamedFormat& entry : format_catalogue) formats.push_back(entry.format);
  for (const char* name :
       {"e2m1",     "e2m1f",        "e2m1fn",       "e2m3f",        "e3m2f",        "e4m3",  "e3m23",
        "e5m21",    "e5m22",        "e6m9",         "e7m22",        "e7m23fn",      "e8m1",  "e4m3b11",
        "e3m2fnuz", "p3109_k8p4se", "p3109_k6p5se", "p3109_k8p1se", "p3109_k5p1sf", "e8m22", "fp16_ftz",
        "bf16_ftz", "fp32_ftz",     "fp8_e4m3_ftz", "e6m22_ftz"}) {
    formats.push_back(parse_format(name));
  }
  return formats;
}

/// The same without formats in which no sum is kept.
[[nodiscard]] inline std::vector<FloatFormat> sum_formats_under_test() {
  std::vector<FloatFormat> formats = formats_under_test();
  std::erase_if(formats, [](const FloatFormat& format) { return !format.has_signed_zero(); });
  return formats;
}

/// Formats without a sign bit, which only rounding and codes take.
[[nodiscard]] inline std::vector<FloatFormat> unsigned_formats_under_test() {
  return {ue4m3,
          ue5m3,
          parse_format("p3109_k8p4ue"),
          parse_format("p3109_k8p2uf"),
          parse_format("p3109_k7p1ue"),
          parse_format("ue2m1f")};
}

/// Every rounding of every overflow policy for `format`.
[[nodiscard]] inline std::vector<Quantizer> quantizers_of(const FloatFormat& format) {
  std::vector<Quantizer> quantizers;
  for (std::size_t r = 0; r < enum_names<Rounding>.size(); ++r) {
    for (const Overflow overflow : {Overflow::infinity, Overflow::saturate}) {
      quantizers.push_back({format, static_cast<Rounding>(r), overflow});
    }
  }
  return quantizers;
}

/// FloatsOf of random bits: every exponent, subnormals, infinities and NaNs among them.
[[nodiscard]] inline std::vector<float> random_floats(std::size_t count, std::uint64_t seed = 1) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = from_bits(RandomStream{seed}.bits(i));
  return values;
}

[[nodiscard]] inline std::vector<float> special_floats() {
  std::vector<float> values;
  for (const std::uint32_t bits : {0u, 1u, 2u, 0x007FFFFFu, 0x00800000u, 0x00800001u, 0x3F800000u,
                                   0x7F7FFFFFu, 0x7F800000u, 0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu}) {
    values.push_back(from_bits(bits));
    values.push_back(from_bits(bits | sign_bit));
  }
  return values;
}

/// The numbers around which rounding to `format` changes its mind: in every binade, grid points and the
/// points half way between them at both ends of the binade, each with its FP32 neighbours, of either sign.
[[nodiscard]] inline std::vector<float> boundary_floats(const FloatFormat& format) {
  std::vector<float> values = special_floats();
  const int lowest = format.min_exponent() - format.mantissa_bits - 3;
  for (int exponent = lowest; exponent <= std::min(format.max_exponent() + 2, 127); ++exponent) {
    const double unit = std::ldexp(1.0, std::max(exponent, format.min_exponent()) - format.mantissa_bits);
    const double start = std::ldexp(1.0, exponent);
    for (const double quarters : {-6., -4., -3., -2., -1., 0., 1., 2., 3., 4., 6., 8., 10.}) {
      const auto middle = static_cast<float>(std::abs(start + quarters * unit / 4));
      for (const float x : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, INFINITY)}) {
        values.push_back(x);
        values.push_back(-x);
      }
    }
  }
  return values;
}

/// Not equality of numbers but of bits: tells the zeros apart, and makes NaN equal to NaN.
[[nodiscard]] inline bool same_bits(float a, float b) {
  return to_bits(a) == to_bits(b);
}
/// The same with any NaN equal to any other: see `with_one_nan`. For results whose NaNs no definition of
/// halfscope has made one.
[[nodiscard]] inline bool same_but_nan_bits(float a, float b) {
  return same_bits(with_one_nan(a), with_one_nan(b));
}
[[nodiscard]] inline bool same_but_nan_bits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return same_but_nan_bits(x, y); });
}

/// "1.5 [0x3fc00000]".
[[nodiscard]] std::string describe(float x);

}  // namespace halfscope
