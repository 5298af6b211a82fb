// RMSProp with momentum: a mean of squares, which begins at 1 as TensorFlow's does, and a velocity per
// weight.
#include "sim/optim/optimizers.hpp"

#include <algorithm>

namespace halfscope {
namespace {

class Rmsprop final : public Optimizer {
 public:
  Rmsprop(const ParameterStore& store, const OptimizerOptions& options)
      : Optimizer(store, options, {"square", "velocity"}) {
    for (std::size_t i = 0; i < store.parameters.size(); ++i) {
      Array ones(slot(0, i).shape(), Device::cpu);
      std::fill_n(ones.data(), ones.size(), 1.0f);
      slot(0, i) = ones.to(active_device());
    }
  }

 private:
  [[nodiscard]] UpdateRule rule(double learning_rate) const override {
    return RmspropStep{.learning_rate = static_cast<float>(learning_rate),
                       .decay = static_cast<float>(options().beta2),
                       .momentum = static_cast<float>(options().momentum),
                       .epsilon = static_cast<float>(options().epsilon)};
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_rmsprop(const ParameterStore& parameters, const OptimizerOptions& options) {
  return std::make_unique<Rmsprop>(parameters, options);
}

}  // namespace halfscope
