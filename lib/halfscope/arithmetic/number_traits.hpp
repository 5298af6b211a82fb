// numeric_limits of halfscope::Number, and its formatting.
#pragma once

#include <fmt/format.h>

#include <limits>

#include <halfscope/arithmetic/number.hpp>

namespace halfscope::detail {

/// 2^exponent, of any float.
[[nodiscard]] constexpr float power_of_two(int exponent) {
  return exponent >= -126 ? from_bits(static_cast<std::uint32_t>(exponent + 127) << 23)
                          : from_bits(1u << (exponent + 149));
}

/// The largest k with 10^k <= x, for x >= 1.
[[nodiscard]] constexpr int floor_log10(double x) {
  int k = 0;
  while (x >= 10) {
    x /= 10;
    ++k;
  }
  return k;
}

[[nodiscard]] constexpr std::float_round_style round_style(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even:
    case Rounding::nearest_away:
      return std::round_to_nearest;
    case Rounding::toward_zero:
      return std::round_toward_zero;
    case Rounding::up:
      return std::round_toward_infinity;
    case Rounding::down:
      return std::round_toward_neg_infinity;
    case Rounding::to_odd:
    case Rounding::stochastic:
      break;
  }
  return std::round_indeterminate;
}

}  // namespace halfscope::detail

template <halfscope::Quantizer q>
class std::numeric_limits<halfscope::Number<q>> {
  // NOLINTBEGIN(readability-identifier-naming): the standard's names
  using Number = halfscope::Number<q>;
  static constexpr halfscope::FloatFormat format = q.format;
  static constexpr bool nearest = halfscope::detail::round_style(q.rounding) == std::round_to_nearest;

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr int radix = 2;
  static constexpr int digits = format.mantissa_bits + 1;
  static constexpr int digits10 = format.mantissa_bits * 30103 / 100000;
  static constexpr int max_digits10 = 2 + digits * 30103 / 100000;
  // numeric_limits counts exponents of significands in [1/2, 1).
  static constexpr int min_exponent = format.min_exponent() + 1;
  static constexpr int max_exponent = format.max_exponent() + 1;
  static constexpr int max_exponent10 =
      halfscope::detail::floor_log10(double{halfscope::from_bits(format.max_finite_bits())});
  static constexpr int min_exponent10 =
      -halfscope::detail::floor_log10(1 / double{halfscope::detail::power_of_two(format.min_exponent())});
  static constexpr bool has_infinity = format.has_infinity() && q.overflow == halfscope::Overflow::infinity;
  static constexpr bool has_quiet_NaN = format.has_nan();
  static constexpr bool has_signaling_NaN = false;  // every NaN becomes the quiet one
  static constexpr bool is_iec559 = format.specials == halfscope::Specials::ieee &&
                                    format.subnormals == halfscope::Subnormals::gradual && has_infinity;
  static constexpr std::float_denorm_style has_denorm =
      format.subnormals == halfscope::Subnormals::gradual ? std::denorm_present : std::denorm_absent;
  static constexpr bool has_denorm_loss = false;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr std::float_round_style round_style = halfscope::detail::round_style(q.rounding);

  static constexpr Number min() noexcept {
    return Number(halfscope::detail::power_of_two(format.min_exponent()));
  }
  static constexpr Number max() noexcept { return Number(halfscope::from_bits(format.max_finite_bits())); }
  static constexpr Number lowest() noexcept { return -max(); }
  static constexpr Number epsilon() noexcept {
    return Number(halfscope::detail::power_of_two(-format.mantissa_bits));
  }
  static constexpr Number round_error() noexcept { return Number(nearest ? 0.5f : 1.0f); }
  static constexpr Number denorm_min() noexcept {
    return Number(halfscope::detail::power_of_two(format.lowest_exponent()));
  }
  static constexpr Number infinity() noexcept { return has_infinity ? Number(__builtin_inff()) : Number(); }
  static constexpr Number quiet_NaN() noexcept {
    return has_quiet_NaN ? Number(halfscope::from_bits(halfscope::quiet_nan_bits)) : Number();
  }
  static constexpr Number signaling_NaN() noexcept { return Number(); }
  // NOLINTEND(readability-identifier-naming)
};

/// As fmt prints a float, with its format specifications.
template <halfscope::Quantizer q>
struct fmt::formatter<halfscope::Number<q>> : fmt::formatter<float> {
  template <typename Context>
  auto format(halfscope::Number<q> x, Context& context) const {
    return fmt::formatter<float>::format(static_cast<float>(x), context);
  }
};
