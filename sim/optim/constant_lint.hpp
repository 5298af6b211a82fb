// Lint of constants: rules of policy/constant_rules.hpp asked in the formats of a run's roles.
#pragma once

#include <string>
#include <vector>

#include <halfscope/format/quantizer.hpp>
#include <halfscope/policy/constant_rules.hpp>

#include "sim/options/entry_options.hpp"

namespace halfscope {

/// A number of the settings that its format does not hold, and what comes of it.
struct Finding {
  std::string what;  ///< the setting, or an expression of settings
  double value = 0;
  double rounded = 0;  ///< as the format has it
  std::string format;
  std::string consequence;
  std::string remedy;

  friend bool operator==(const Finding&, const Finding&) = default;
};

inline constexpr std::string_view keep_state = "give optimizer_state=fp32";

/// The format of a role. Its losses are added to `found`, which outlives it; FP32 loses nothing.
class RoleFormat {
 public:
  RoleFormat(const Quantizer& quantizer, std::vector<Finding>& found);

  /// Adds a finding where the format loses the constant; returns it, or null.
  Finding* check(ConstantKind kind, const std::string& what, double value,
                 const std::string& remedy = std::string(keep_state)) const;
  /// A number of the format, to nearest where the quantizer is stochastic.
  [[nodiscard]] double operator()(double value) const;
  [[nodiscard]] double smallest() const;  ///< subnormal ones included
  [[nodiscard]] double smallest_normal() const;

 private:
  Quantizer quantizer_;
  std::vector<Finding>* found_;
};

/// An optimizer's constants, and the formats that they are used in.
struct OptimizerLint {
  double learning_rate = 0;
  const OptionValues& options;
  RoleFormat state;   ///< format of moments and of the update's arithmetic
  RoleFormat master;  ///< format of the weights that are updated
};

/// A decay, such as beta1 or momentum, that the state's format rounds to 1.
void lint_decay(const OptimizerLint& lint, const std::string& name);
/// The weight of a new square, 1 - beta2, that the state's format flushes.
void lint_new_square(const OptimizerLint& lint);
/// Squares of gradients that the state's format flushes.
void lint_squares(const OptimizerLint& lint);
/// Null where the state's format holds epsilon.
Finding* lint_epsilon(const OptimizerLint& lint);
/// Updates of the size `update`, as `text` says it, beside a weight of 1.
void lint_update(const OptimizerLint& lint, const std::string& text, double update);

}  // namespace halfscope
