// Lint of constants: findings, and the rules that several optimizers share.
#include "sim/optim/constant_lint.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include <halfscope/format/round.hpp>

namespace halfscope {

RoleFormat::RoleFormat(const Quantizer& quantizer, std::vector<Finding>& found)
    : quantizer_(quantizer), found_(&found) {
  if (quantizer_.rounding == Rounding::stochastic) quantizer_.rounding = Rounding::nearest_even;
}

Finding* RoleFormat::check(ConstantKind kind, const std::string& what, double value,
                           const std::string& remedy) const {
  if (quantizer_.is_identity()) return nullptr;
  const std::optional<LostConstant> lost = lost_constant(kind, value, quantizer_);
  if (!lost) return nullptr;
  found_->push_back({what, value, lost->rounded, to_string(quantizer_), lost->consequence, remedy});
  return &found_->back();
}

double RoleFormat::operator()(double value) const {
  return static_cast<double>(round(static_cast<float>(value), quantizer_));
}

double RoleFormat::smallest() const {
  return std::ldexp(1.0, quantizer_.format.lowest_exponent());
}

double RoleFormat::smallest_normal() const {
  return std::ldexp(1.0, quantizer_.format.min_exponent());
}

void lint_decay(const OptimizerLint& lint, const std::string& name) {
  lint.state.check(ConstantKind::decay, name, lint.options.at(name),
                   fmt::format("choose a smaller {}, or {}", name, keep_state));
}

void lint_new_square(const OptimizerLint& lint) {
  lint.state.check(ConstantKind::one_minus_decay, "1 - beta2", 1 - lint.options.at("beta2"),
                   fmt::format("choose a smaller beta2, or {}", keep_state));
}

void lint_squares(const OptimizerLint& lint) {
  const double normal = lint.state.smallest_normal();
  lint.state.check(ConstantKind::square, "square of a gradient", normal * normal);
}

Finding* lint_epsilon(const OptimizerLint& lint) {
  return lint.state.check(
      ConstantKind::optimizer_epsilon, "epsilon", lint.options.at("epsilon"),
      fmt::format("give epsilon={:.2g} or more, or {}", lint.state.smallest(), keep_state));
}

void lint_update(const OptimizerLint& lint, const std::string& text, double update) {
  Finding* found =
      lint.master.check(ConstantKind::update_beside_one, "1 + " + text, update, "give master_weight=fp32");
  if (found == nullptr) return;
  found->value = 1 + update;
  found->rounded = 1;
}

}  // namespace halfscope
