// Adam, with and without decoupled weight decay: two moments per weight, bias correction from the number of
// steps taken.
#include "sim/optim/adam.hpp"

#include "sim/optim/optimizers.hpp"

namespace halfscope {
namespace {

/// base^exponent by squaring: the same bits everywhere, which libm's pow does not promise.
double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return result;
}

class Adamw final : public Adam {
 public:
  using Adam::Adam;

 private:
  [[nodiscard]] UpdateRule rule(double learning_rate) const override { return adamw_step(learning_rate); }
};

}  // namespace

AdamStep Adam::adam_step(double learning_rate) const {
  return {.learning_rate = static_cast<float>(learning_rate),
          .beta1 = static_cast<float>(option("beta1")),
          .beta2 = static_cast<float>(option("beta2")),
          .correction1 = static_cast<float>(1 - power(option("beta1"), steps())),
          .correction2 = static_cast<float>(1 - power(option("beta2"), steps())),
          .epsilon = static_cast<float>(option("epsilon"))};
}

void lint_adam(const OptimizerLint& lint) {
  lint_epsilon(lint);
  lint_decay(lint, "beta1");
  lint_decay(lint, "beta2");
  lint_new_square(lint);
  lint_squares(lint);
  lint_update(lint, "learning_rate", lint.learning_rate);
}

void lint_adamw(const OptimizerLint& lint) {
  lint_adam(lint);
  const double decay = lint.learning_rate * lint.options.at("weight_decay");
  Finding* found = lint.master.check(ConstantKind::weight_decay, "1 - learning_rate * weight_decay", decay,
                                     "give master_weight=fp32");
  if (found == nullptr) return;
  found->value = 1 - decay;
  found->rounded = lint.master(1 - decay);
}

constexpr OptimizerKind adam_kind{make_as<Adam>, {adam_beta1, adam_beta2, adam_epsilon}, lint_adam};
constexpr OptimizerKind adamw_kind{
    make_as<Adamw>, {adam_beta1, adam_beta2, adam_epsilon, adam_weight_decay}, lint_adamw};

}  // namespace halfscope
