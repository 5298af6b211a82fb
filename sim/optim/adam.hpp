// Adam as others build on it: its options, its step and its lint.
#pragma once

#include "sim/optim/constant_lint.hpp"
#include "sim/optim/optimizer.hpp"
#include "sim/optim/option_ranges.hpp"

namespace halfscope {

inline constexpr EntryOption adam_beta1{"beta1", 0.9, decay_range,
                                        "share of the mean gradient that a step keeps"};
inline constexpr EntryOption adam_beta2{"beta2", 0.999, decay_range,
                                        "share of the mean square that a step keeps"};
inline constexpr EntryOption adam_epsilon{"epsilon", 1e-8, epsilon_range,
                                          "added to the root of the mean square"};
inline constexpr EntryOption adam_weight_decay{
    "weight_decay", 0, share_range, "this share of a weight times the learning rate goes at every step"};

class Adam : public Optimizer {
 public:
  Adam(const ParameterStore& store, const OptimizerOptions& options)
      : Optimizer(store, options, {"first_moment", "second_moment"}) {}

 protected:
  /// The constants of the step numbered `steps()`.
  [[nodiscard]] AdamStep adam_step(double learning_rate) const;
  [[nodiscard]] AdamwStep adamw_step(double learning_rate) const {
    return {.adam = adam_step(learning_rate), .decay = static_cast<float>(option("weight_decay"))};
  }

 private:
  [[nodiscard]] UpdateRule rule(double learning_rate) const override { return adam_step(learning_rate); }
};

/// Updates are about as large as the learning rate.
void lint_adam(const OptimizerLint& lint);
/// The same, and a decay that no weight feels.
void lint_adamw(const OptimizerLint& lint);

}  // namespace halfscope
