// The table of the lints' rules, a line each: the loss, its limit, and a clause on its consequence.
#include <halfscope/policy/constant_rules.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/format/bits.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope {
namespace {

/// A constant, and its format.
struct Rounded {
  double value;
  Quantizer quantizer;

  [[nodiscard]] double operator()(double number) const {
    return static_cast<double>(round(static_cast<float>(number), quantizer));
  }
  [[nodiscard]] double rounded() const { return (*this)(value); }
  [[nodiscard]] double smallest() const { return std::ldexp(1.0, quantizer.format.lowest_exponent()); }
  [[nodiscard]] double largest() const {
    return static_cast<double>(from_bits(quantizer.format.max_finite_bits()));
  }
  /// Half the distance of 1 from the next number above it.
  [[nodiscard]] double half_step() const { return std::ldexp(1.0, -quantizer.format.mantissa_bits - 1); }
};

bool is_zero(const Rounded& c) {
  return c.value != 0 && c.rounded() == 0;
}
bool is_not_finite(const Rounded& c) {
  return std::isfinite(c.value) && !std::isfinite(c.rounded());
}
bool is_zero_or_infinite(const Rounded& c) {
  return is_zero(c) || is_not_finite(c);
}
bool has_infinite_reciprocal(const Rounded& c) {
  return c.value > 0 && c.rounded() > 0 && !std::isfinite(c(1 / c.rounded()));
}
/// Formats with the range of FP32 lose what FP32 loses.
bool is_zero_for_its_range(const Rounded& c) {
  return c.quantizer.format.exponent_bits < 8 && is_zero(c);
}
bool is_no_gradient(const Rounded& c) {
  return c.rounded() == 0 || !std::isfinite(c.rounded());
}
bool is_one(const Rounded& c) {
  return c.value < 1 && c.rounded() >= 1;
}
bool vanishes_beside_one(const Rounded& c) {
  return c.value > 0 && c(1 + c.value) == 1;
}
/// A weight s 2^e, 1 < s < 2, stays what it is iff value * s <= half a step of [1, 2).
bool vanishes_beside_some(const Rounded& c) {
  return c.value > 0 && c.value < c.half_step();
}
bool exceeds_integers(const Rounded& c) {
  return c.value > std::ldexp(1.0, c.quantizer.format.mantissa_bits + 1);
}

double smallest(const Rounded& c) {
  return c.smallest();
}
double in_range(const Rounded& c) {
  return std::copysign(c.rounded() == 0 ? c.smallest() : c.largest(), c.value);
}
/// The reciprocal of the largest number, or, where the format's next number lies below it, a little more.
double reciprocal_of_largest(const Rounded& c) {
  double candidate = 1 / c.largest();
  while (has_infinite_reciprocal({candidate, c.quantizer})) candidate += 2 * c.half_step() * candidate;
  return candidate;
}
double below_one(const Rounded& c) {
  return 1 - c.half_step();
}
double half_step(const Rounded& c) {
  return c.half_step();
}
double full_step(const Rounded& c) {
  return 2 * c.half_step();
}
double last_integer(const Rounded& c) {
  return std::ldexp(1.0, c.quantizer.format.mantissa_bits + 1);
}

std::string on_square(const Rounded& c) {
  return fmt::format("gradients below {:.2g} have no second moment", std::sqrt(c.smallest() / 2));
}
/// The constant is the rate times the smallest normal number.
std::string on_update_of_gradient(const Rounded& c) {
  const double rate = c.value / std::ldexp(1.0, c.quantizer.format.min_exponent());
  return fmt::format("gradients below {:.2g} update nothing", c.smallest() / 2 / rate);
}
std::string on_weight_decay(const Rounded& c) {
  const double share = std::min(1.0, std::log2(c.half_step() / c.value));
  return fmt::format("{:.1f} % of the weights never decay", 100 * share);
}
std::string on_largest_gradient(const Rounded& c) {
  return c.rounded() == 0 ? "every gradient is flushed to zero"
                          : "a wrong prediction makes the weights infinite or NaN";
}
std::string on_factor(const Rounded& c) {
  return is_zero(c) ? "a product with it is 0, and a sum does not see it"
                    : "the result of its sum or product is infinite";
}
std::string on_count(const Rounded& c) {
  return fmt::format("adding 1 stops at {:.0f}", last_integer(c));
}

struct ConstantRule {
  ConstantKind kind;
  bool (*is_lost)(const Rounded&);
  double (*limit)(const Rounded&);
  std::string_view clause;  ///< the consequence, unless it has numbers in it
  std::string (*numbered)(const Rounded&) = nullptr;
};

constexpr std::array constant_rules = [] {
  using enum ConstantKind;
  return std::array{
      ConstantRule{optimizer_epsilon, is_zero, smallest,
                   "an element without a gradient is updated by 0 / 0, which is NaN"},
      ConstantRule{epsilon, is_zero, smallest, "a row of zeros is divided by 0, which is NaN"},
      ConstantRule{epsilon_gradient, has_infinite_reciprocal, reciprocal_of_largest,
                   "the gradient at a row of zeros, 1 / epsilon, is infinite"},
      ConstantRule{decay, is_one, below_one, "the average never forgets"},
      ConstantRule{one_minus_decay, is_zero, smallest, "the second moment stays 0 and is divided by 0"},
      ConstantRule{square, is_zero_for_its_range, smallest, {}, on_square},
      ConstantRule{learning_rate, is_zero, smallest, "every update is 0"},
      ConstantRule{warmup_rate, is_zero, smallest, "the first updates of the warm-up are 0"},
      ConstantRule{update_beside_one, vanishes_beside_one, full_step,
                   "a weight of 1 does not feel a whole step"},
      ConstantRule{update_of_gradient, is_zero_for_its_range, smallest, {}, on_update_of_gradient},
      ConstantRule{weight_decay, vanishes_beside_some, half_step, {}, on_weight_decay},
      ConstantRule{largest_gradient, is_no_gradient, in_range, {}, on_largest_gradient},
      ConstantRule{factor, is_zero_or_infinite, in_range, {}, on_factor},
      ConstantRule{count, exceeds_integers, last_integer, {}, on_count},
  };
}();

}  // namespace

std::optional<LostConstant> lost_constant(ConstantKind kind, double value, const Quantizer& quantizer) {
  Rounded constant{value, quantizer};
  if (quantizer.rounding == Rounding::stochastic) constant.quantizer.rounding = Rounding::nearest_even;
  for (const ConstantRule& rule : constant_rules) {
    if (rule.kind != kind || !rule.is_lost(constant)) continue;
    return LostConstant{value, constant.rounded(), rule.limit(constant),
                        rule.numbered == nullptr ? std::string(rule.clause) : rule.numbered(constant)};
  }
  return std::nullopt;
}

}  // namespace halfscope
