// Stochastic gradient descent: one velocity per weight.
#include "sim/optim/optimizers.hpp"

#include "lib/nn/optimizer_step.hpp"

namespace halfscope {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const ParameterStore& store, const OptimizerOptions& options)
      : Optimizer(store, {"velocity"}), options_(options) {}

  void compute(std::size_t index, const Array& gradient, Array& update) override {
    sgd_update(gradient.values(), step_, options_.state, slot(0, index).values(), update.values());
  }
  void apply(std::size_t index, const cuda::AppliedUpdate& update) override {
    cuda::apply_sgd(update, step_, options_.state, slot(0, index).values());
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
