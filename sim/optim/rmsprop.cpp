// RMSProp with momentum: a mean of squares, which begins at 1 as TensorFlow's does, and a velocity per
// weight.
#include "sim/optim/optimizers.hpp"

#include <algorithm>

namespace halfscope {
namespace {

class Rmsprop final : public Optimizer {
 public:
  Rmsprop(const ParameterStore& store, const OptimizerOptions& options)
      : Optimizer(store, {"square", "velocity"}), options_(options) {
    for (std::size_t i = 0; i < store.parameters.size(); ++i) {
      Array ones(slot(0, i).shape(), Device::cpu);
      std::fill_n(ones.data(), ones.size(), 1.0f);
      slot(0, i) = ones.to(active_device());
    }
  }

  void update(std::size_t index, const WeightUpdate& update) override {
    rmsprop_update(update, step_, options_.state, slot(0, index).values(), slot(1, index).values());
  }

 private:
  void prepare(double learning_rate) override {
    step_ = {.learning_rate = static_cast<float>(learning_rate),
             .decay = static_cast<float>(options_.beta2),
             .momentum = static_cast<float>(options_.momentum),
             .epsilon = static_cast<float>(options_.epsilon)};
  }

  OptimizerOptions options_;
  RmspropStep step_;
};

}  // namespace

std::unique_ptr<Optimizer> make_rmsprop(const ParameterStore& parameters, const OptimizerOptions& options) {
  return std::make_unique<Rmsprop>(parameters, options);
}

}  // namespace halfscope
