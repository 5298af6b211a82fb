// Stochastic gradient descent: one velocity per weight.
#include "sim/optim/optimizers.hpp"
#include "sim/optim/option_ranges.hpp"

namespace halfscope {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const ParameterStore& store, const OptimizerOptions& options)
      : Optimizer(store, options, {"velocity"}) {}

 private:
  [[nodiscard]] UpdateRule rule(double learning_rate) const override {
    return SgdStep{.learning_rate = static_cast<float>(learning_rate),
                   .momentum = static_cast<float>(option("momentum"))};
  }
};

/// Updates may be of any size: only what the state's arithmetic flushes is known.
void lint_sgd(const OptimizerLint& lint) {
  lint_decay(lint, "momentum");
  lint.state.check(ConstantKind::update_of_gradient, "learning_rate * gradient",
                   lint.state(lint.learning_rate) * lint.state.smallest_normal());
}

}  // namespace

constexpr OptimizerKind sgd_kind{
    make_as<Sgd>, {{"momentum", 0.9, share_range, "share of the velocity that a step keeps"}}, lint_sgd};

}  // namespace halfscope
