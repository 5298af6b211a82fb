// An optimizer as a newcomer would add it: one with an update rule of its own.
#include "sim/optim/optimizers.hpp"

namespace halfscope {
namespace {

class SampleOptimizer final : public Optimizer {
 public:
  SampleOptimizer(const ParameterStore& store, const OptimizerOptions& options)
      : Optimizer(store, options, {"gradient"}) {}

 private:
  [[nodiscard]] UpdateRule rule(double learning_rate) const override {
    return SampleStep{.learning_rate = static_cast<float>(learning_rate)};
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_sample_optimizer(const ParameterStore& parameters,
                                                 const OptimizerOptions& options) {
  return std::make_unique<SampleOptimizer>(parameters, options);
}

}  // namespace halfscope
