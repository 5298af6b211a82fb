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

constexpr OptimizerKind sample_optimizer_kind{make_as<SampleOptimizer>,
                                              {{"sample_option", 0.5, {0, 1}, "an option of its own"}}};

}  // namespace halfscope
