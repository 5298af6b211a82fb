// The frameworks' divisions, and their names.
#include <halfscope/arithmetic/gradient_division.hpp>

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include <halfscope/format/round.hpp>

namespace halfscope {
namespace {

DivisionStep times(double factor) {
  if (factor == 1) return {};
  return {DivisionStep::Kind::multiply, static_cast<float>(factor)};
}

DivisionStep over(double divisor) {
  if (divisor == 1) return {};
  return {DivisionStep::Kind::divide, static_cast<float>(divisor)};
}

/// The whole text as a number; false where it does not begin as one.
bool read_factor(std::string_view text, double& factor) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (end == text.data()) return false;
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || !(factor >= 1 / double{std::numeric_limits<float>::max()} &&
                  factor <= double{std::numeric_limits<float>::max()})) {
    throw InvalidArgument(
        fmt::format("pre-division by '{}': give a positive number, or a rule of 'list "
                    "divisions'",
                    text));
  }
  return true;
}

}  // namespace

namespace division {

DivisionSteps multiply_before(std::int64_t ranks) {
  return {.before = times(1 / static_cast<double>(ranks))};
}

DivisionSteps multiply_after(std::int64_t ranks) {
  return {.after = times(1 / static_cast<double>(ranks))};
}

DivisionSteps divide_before(std::int64_t ranks) {
  return {.before = over(static_cast<double>(ranks))};
}

DivisionSteps divide_by_roots(std::int64_t ranks) {
  std::int64_t factor = 1;
  while (ranks % factor == 0 && ranks / factor > factor) factor *= 2;
  const auto before = static_cast<double>(factor);
  return {.before = over(before), .after = over(static_cast<double>(ranks) / before)};
}

DivisionSteps multiply_rounded_before(std::int64_t ranks) {
  DivisionSteps steps = multiply_before(ranks);
  if (ranks != 1) steps.before.kind = DivisionStep::Kind::multiply_rounded;
  return steps;
}

DivisionSteps no_steps(std::int64_t) {
  return {};
}

}  // namespace division

std::string to_string(const GradientDivision& division) {
  return division.rule != nullptr ? std::string(division.rule->name) : fmt::format("{}", division.factor);
}

GradientDivision parse_gradient_division(std::string_view text) {
  GradientDivision division;
  if (read_factor(text, division.factor)) {
    division.rule = nullptr;
  } else {
    division.rule = &find_in_table("division", text, division_rules);
  }
  return division;
}

DivisionSteps division_steps(const GradientDivision& division, std::int64_t ranks, const FloatFormat& wire) {
  DivisionSteps steps;
  if (division.rule != nullptr) {
    steps = division.rule->steps(ranks);
  } else {
    steps = {.before = times(1 / division.factor),
             .after = times(division.factor / static_cast<double>(ranks))};
  }
  for (DivisionStep* step : {&steps.before, &steps.after}) {
    if (step->kind == DivisionStep::Kind::multiply_rounded)
      step->constant = round(step->constant, {.format = wire});
  }
  return steps;
}

}  // namespace halfscope
