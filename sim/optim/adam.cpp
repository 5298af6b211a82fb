// Adam: two moments per weight, bias correction from the number of steps taken.
#include "sim/optim/adam.hpp"

#include <halfscope/kernel/update.hpp>

namespace halfscope {
namespace {

/// base^exponent by squaring: the same bits everywhere, which libm's pow does not promise.
double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return result;
}

class Adam final : public Optimizer {
 public:
  Adam(const ParameterStore& store, const OptimizerOptions& options) : options_(options) {
    for (const Parameter& parameter : store.parameters) {
      names_.push_back(parameter.name);
      first_.push_back(Array::zeros(parameter.master.shape()));
      second_.push_back(Array::zeros(parameter.master.shape()));
    }
  }

  void begin_step(double learning_rate) override {
    ++steps_;
    step_ = {.learning_rate = static_cast<float>(learning_rate),
             .beta1 = static_cast<float>(options_.beta1),
             .beta2 = static_cast<float>(options_.beta2),
             .correction1 = static_cast<float>(1 - power(options_.beta1, steps_)),
             .correction2 = static_cast<float>(1 - power(options_.beta2, steps_)),
             .epsilon = static_cast<float>(options_.epsilon)};
  }
  void compute(std::size_t index, const Array& gradient, Array& update) override {
    adam_update(gradient.values(), step_, options_.state, first_[index].values(), second_[index].values(),
                update.values());
  }
  std::vector<OptimizerState> state() override {
    std::vector<OptimizerState> arrays;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      arrays.push_back({"first_moment." + names_[i], &first_[i]});
      arrays.push_back({"second_moment." + names_[i], &second_[i]});
    }
    return arrays;
  }
  [[nodiscard]] std::int64_t steps() const override { return steps_; }
  void restore_steps(std::int64_t steps) override { steps_ = steps; }

 private:
  OptimizerOptions options_;
  std::vector<std::string> names_;
  std::vector<Array> first_;
  std::vector<Array> second_;
  AdamStep step_;
  std::int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_adam(const ParameterStore& parameters, const OptimizerOptions& options) {
  return std::make_unique<Adam>(parameters, options);
}

}  // namespace halfscope
