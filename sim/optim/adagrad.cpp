// Adagrad: a sum of squares per weight, which only grows.
#include "sim/optim/optimizers.hpp"
#include "sim/optim/option_ranges.hpp"

namespace halfscope {
namespace {

class Adagrad final : public Optimizer {
 public:
  Adagrad(const ParameterStore& store, const OptimizerOptions& options)
      : Optimizer(store, options, {"sum_of_squares"}) {}

 private:
  [[nodiscard]] UpdateRule rule(double learning_rate) const override {
    return AdagradStep{.learning_rate = static_cast<float>(learning_rate),
                       .epsilon = static_cast<float>(option("epsilon"))};
  }
};

/// Updates are as large as the learning rate at the first step, and smaller at each later one.
void lint_adagrad(const OptimizerLint& lint) {
  lint_epsilon(lint);
  lint_squares(lint);
  lint_update(lint, "learning_rate", lint.learning_rate);
}

}  // namespace

constexpr OptimizerKind adagrad_kind{
    make_as<Adagrad>,
    {{"epsilon", 1e-8, epsilon_range, "added to the root of the sum of squares"}},
    lint_adagrad};

}  // namespace halfscope
