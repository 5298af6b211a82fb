// Stochastic gradient descent: one velocity per weight.
#include "sim/optim/optimizers.hpp"

namespace halfscope {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const ParameterStore& store, const OptimizerOptions& options)
      : Optimizer(store, {"velocity"}), options_(options) {}

  void update(std::size_t index, const WeightUpdate& update) override {
    sgd_update(update, step_, options_.state, slot(0, index).values());
  }

 private:
  void prepare(double learning_rate) override {
    step_ = {.learning_rate = static_cast<float>(learning_rate),
             .momentum = static_cast<float>(options_.momentum)};
  }

  OptimizerOptions options_;
  SgdStep step_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const ParameterStore& parameters, const OptimizerOptions& options) {
  return std::make_unique<Sgd>(parameters, options);
}

}  // namespace halfscope
