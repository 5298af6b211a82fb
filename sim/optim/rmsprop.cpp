// RMSProp with momentum: a mean of squares, which begins at 1 as TensorFlow's does, and a velocity per
// weight.
#include <algorithm>

#include "sim/optim/optimizers.hpp"
#include "sim/optim/option_ranges.hpp"

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
                       .decay = static_cast<float>(option("beta2")),
                       .momentum = static_cast<float>(option("momentum")),
                       .epsilon = static_cast<float>(option("epsilon"))};
  }
};

/// Updates of a steady gradient are as large as the learning rate, gathered by the momentum.
void lint_rmsprop(const OptimizerLint& lint) {
  if (Finding* found = lint_epsilon(lint))
    found->consequence =
        "once its mean of squares has decayed to 0, an element without a gradient is updated by 0 / 0, which "
        "is NaN";
  lint_decay(lint, "momentum");
  lint_decay(lint, "beta2");
  lint_new_square(lint);
  lint_squares(lint);
  const double momentum = lint.options.at("momentum");
  if (momentum < 1) lint_update(lint, "learning_rate / (1 - momentum)", lint.learning_rate / (1 - momentum));
}

}  // namespace

constexpr OptimizerKind rmsprop_kind{
    make_as<Rmsprop>,
    {{"momentum", 0.9, share_range, "share of the velocity that a step keeps"},
     {"beta2", 0.999, decay_range, "share of the mean square that a step keeps"},
     {"epsilon", 1e-8, epsilon_range, "added to the mean square, within the root"}},
    lint_rmsprop};

}  // namespace halfscope
