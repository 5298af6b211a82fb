// Adagrad: a sum of squares per weight, which only grows.
#include "sim/optim/optimizers.hpp"

namespace halfscope {
namespace {

class Adagrad final : public Optimizer {
 public:
  Adagrad(const ParameterStore& store, const OptimizerOptions& options)
      : Optimizer(store, options, {"sum_of_squares"}) {}

 private:
  [[nodiscard]] UpdateRule rule(double learning_rate) const override {
    return AdagradStep{.learning_rate = static_cast<float>(learning_rate),
                       .epsilon = static_cast<float>(options().epsilon)};
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_adagrad(const ParameterStore& parameters, const OptimizerOptions& options) {
  return std::make_unique<Adagrad>(parameters, options);
}

}  // namespace halfscope
