// Stochastic gradient descent: one velocity per weight.
#include "sim/optim/optimizers.hpp"

namespace halfscope {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const ParameterStore& store, const OptimizerOptions& options)
      : Optimizer(store, options, {"velocity"}) {}

 private:
  [[nodiscard]] UpdateRule rule(double learning_rate) const override {
    return SgdStep{.learning_rate = static_cast<float>(learning_rate),
                   .momentum = static_cast<float>(options().momentum)};
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const ParameterStore& parameters, const OptimizerOptions& options) {
  return std::make_unique<Sgd>(parameters, options);
}

}  // namespace halfscope
