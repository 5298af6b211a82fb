// Constants that formats lose: known answers, limits that survive, and shares counted over all significands.
#include <halfscope/policy/constant_rules.hpp>

#include <halfscope/format/round.hpp>

#include <cmath>

#include "tests/support/catch.hpp"

namespace halfscope::constant_rules_test {
namespace {

using enum ConstantKind;

struct Known {
  ConstantKind kind;
  double value;
  const char* format;
  bool is_lost;
};

constexpr Known known[] = {
    {optimizer_epsilon, 1e-8, "fp16", true},
    {optimizer_epsilon, 1e-7, "fp16", false},
    {optimizer_epsilon, 1e-8, "bf16", false},
    {decay, 0.999, "bf16", true},
    {decay, 0.999, "fp16", false},
    {decay, 0.99, "bf16", false},
    {one_minus_decay, 0x1p-25, "fp16", true},
    {one_minus_decay, 0.001, "fp16", false},
    {epsilon_gradient, 1e-5, "fp16", true},
    {epsilon_gradient, 1e-4, "fp16", false},
    {epsilon_gradient, 1e-12, "bf16", false},
    {factor, -1e9, "fp16", true},
    {factor, -1e4, "fp16", false},
    {factor, 1e-10, "fp16", true},
    {factor, -1e9, "bf16", false},
    {count, 257, "bf16", true},
    {count, 256, "bf16", false},
    {count, 2049, "fp16", true},
    {update_beside_one, 1e-3, "bf16", true},
    {update_beside_one, 1e-3, "fp16", false},
    {weight_decay, 1e-3, "bf16", true},
    {weight_decay, 0.0059, "bf16", false},
    {square, 0x1p-28, "fp16", true},
    {square, 0x1p-252, "bf16", false},
    {largest_gradient, 65536, "fp16", true},
    {learning_rate, 1e-8, "fp16", true},
};

TEST_CASE("constants that are known to be lost, and to survive", "[constants]") {
  for (const Known& entry : known) {
    INFO(name_of(entry.kind) << " " << entry.value << " in " << entry.format);
    CHECK(lost_constant(entry.kind, entry.value, parse_quantizer(entry.format)).has_value() == entry.is_lost);
  }
}

TEST_CASE("the limit of a lost constant survives", "[constants]") {
  for (const Known& entry : known) {
    const Quantizer quantizer = parse_quantizer(entry.format);
    const auto lost = lost_constant(entry.kind, entry.value, quantizer);
    if (!lost) continue;
    INFO(name_of(entry.kind) << " " << lost->limit << " in " << entry.format);
    CHECK_FALSE(lost_constant(entry.kind, lost->limit, quantizer));
  }
}

TEST_CASE("FP32 keeps every constant of these", "[constants]") {
  for (const Known& entry : known) {
    INFO(name_of(entry.kind) << " " << entry.value);
    CHECK_FALSE(lost_constant(entry.kind, entry.value, {}));
  }
}

/// Share of the weights in [1, 2), uniform in their logarithm, that a decay leaves: by every one of
/// 2^mantissa.
double share_that_stays(double decay, const Quantizer& quantizer) {
  const int numbers = 1 << quantizer.format.mantissa_bits;
  double stays = 0;
  for (int i = 0; i < numbers; ++i) {
    const double weight = 1 + static_cast<double>(i) / numbers;
    const auto decayed = static_cast<float>(weight * (1 - decay));
    if (static_cast<double>(round(decayed, quantizer)) == weight)
      stays += std::log2(1 + 1 / (weight * numbers));
  }
  return stays;
}

TEST_CASE("the share of weights that never decay is that of the significands", "[constants]") {
  const Quantizer bf16 = parse_quantizer("bf16");
  for (const double decay : {0.0015, 0.002344, 0.003, 0.003516}) {
    const auto lost = lost_constant(weight_decay, decay, bf16);
    REQUIRE(lost);
    const double share = std::stod(lost->consequence) / 100;
    // Weights of one significand are one step of 2^-7 in the share.
    CHECK(std::abs(share - share_that_stays(decay, bf16)) < 0x1p-6);
  }
}

}  // namespace
}  // namespace halfscope::constant_rules_test
