// Stochastic gradient descent: one velocity per weight.
#include "sim/optim/sgd.hpp"

#include <halfscope/kernel/update.hpp>

namespace halfscope {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const ParameterStore& store, const OptimizerOptions& options) : options_(options) {
    for (const Parameter& parameter : store.parameters) {
      names_.push_back(parameter.name);
      velocity_.push_back(Array::zeros(parameter.master.shape()));
    }
  }

  void begin_step(double learning_rate) override {
    step_ = {.learning_rate = static_cast<float>(learning_rate),
             .momentum = static_cast<float>(options_.momentum)};
    ++steps_;
  }
  void compute(std::size_t index, const Array& gradient, Array& update) override {
    sgd_update(gradient.values(), step_, options_.state, velocity_[index].values(), update.values());
  }
  std::vector<OptimizerState> state() override {
    std::vector<OptimizerState> arrays;
    for (std::size_t i = 0; i < names_.size(); ++i)
      arrays.push_back({"velocity." + names_[i], &velocity_[i]});
    return arrays;
  }
  [[nodiscard]] std::int64_t steps() const override { return steps_; }
  void restore_steps(std::int64_t steps) override { steps_ = steps; }

 private:
  OptimizerOptions options_;
  std::vector<std::string> names_;
  std::vector<Array> velocity_;
  SgdStep step_;
  std::int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const ParameterStore& parameters, const OptimizerOptions& options) {
  return std::make_unique<Sgd>(parameters, options);
}

}  // namespace halfscope
