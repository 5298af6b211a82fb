// An optimizer as a newcomer would add it: gradient descent without momentum.
#include "sim/optim/optimizers.hpp"

#include "lib/nn/optimizer_step.hpp"

namespace halfscope {
namespace {

class SampleOptimizer final : public Optimizer {
 public:
  SampleOptimizer(const ParameterStore& store, const OptimizerOptions& options)
      : Optimizer(store, {"gradient"}), options_(options) {}

  void update(std::size_t index, const WeightUpdate& update) override {
    sgd_update(update, step_, options_.state, slot(0, index).values());
  }

 private:
  void prepare(double learning_rate) override {
    step_ = {.learning_rate = static_cast<float>(learning_rate), .momentum = 0};
  }

  OptimizerOptions options_;
  SgdStep step_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sample_optimizer(const ParameterStore& parameters,
                                                 const OptimizerOptions& options) {
  return std::make_unique<SampleOptimizer>(parameters, options);
}

}  // namespace halfscope
