// Adam, with and without decoupled weight decay: two moments per weight, bias correction from the number of
// steps taken.
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

class Adam : public Optimizer {
 public:
  Adam(const ParameterStore& store, const OptimizerOptions& options)
      : Optimizer(store, options, {"first_moment", "second_moment"}) {}

 protected:
  [[nodiscard]] AdamStep step(double learning_rate) const {
    return AdamStep{.learning_rate = static_cast<float>(learning_rate),
                    .beta1 = static_cast<float>(options().beta1),
                    .beta2 = static_cast<float>(options().beta2),
                    .correction1 = static_cast<float>(1 - power(options().beta1, steps())),
                    .correction2 = static_cast<float>(1 - power(options().beta2, steps())),
                    .epsilon = static_cast<float>(options().epsilon)};
  }

 private:
  [[nodiscard]] UpdateRule rule(double learning_rate) const override { return step(learning_rate); }
};

class Adamw final : public Adam {
 public:
  using Adam::Adam;

 private:
  [[nodiscard]] UpdateRule rule(double learning_rate) const override {
    return AdamwStep{.adam = step(learning_rate), .decay = static_cast<float>(options().weight_decay)};
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_adam(const ParameterStore& parameters, const OptimizerOptions& options) {
  return std::make_unique<Adam>(parameters, options);
}

std::unique_ptr<Optimizer> make_adamw(const ParameterStore& parameters, const OptimizerOptions& options) {
  return std::make_unique<Adamw>(parameters, options);
}

}  // namespace halfscope
