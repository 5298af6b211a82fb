// Optimizers: update a parameter's master copy from its gradient, and keep what they remember of it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <halfscope/device/array.hpp>
#include <halfscope/format/quantizer.hpp>

#include "lib/nn/optimizer_step.hpp"
#include "sim/optim/moment_formats.hpp"
#include "sim/options/entry_options.hpp"
#include "sim/tape/parameter.hpp"

namespace halfscope {

struct OptimizerOptions {
  OptionValues values{};                ///< all that the optimizer takes
  Quantizer state{};                    ///< the format of state and of the update's arithmetic
  std::vector<MomentFormat> moments{};  ///< formats of arrays of state between the steps, by their names
  std::uint64_t seed = 0;               ///< seed of their random bits
};

/// An array by its name in a checkpoint.
struct ArrayReference {
  std::string name;
  Array* array = nullptr;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Called once before the parameters of a step that is not skipped.
  void begin_step(double learning_rate);
  /// Updates the weights of the parameter at `index`, whose arrays `update` holds.
  void update(std::size_t index, const WeightUpdate& update);

  /// Every array of state, "SLOT.PARAMETER".
  [[nodiscard]] std::vector<ArrayReference> state();
  /// The share of a weight that an update takes off it besides, at this learning rate.
  [[nodiscard]] double decay(double learning_rate) const;
  /// Steps taken, skipped ones not counted.
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  void restore_steps(std::int64_t steps) { steps_ = steps; }

 protected:
  /// One array of zeros per slot and parameter, of the parameter's shape; the slots are the rule's, in order.
  /// A parameter whose rule has fewer keeps its last arrays empty. Throws InvalidArgument for a format of
  /// state that it does not have.
  Optimizer(const ParameterStore& store, const OptimizerOptions& options,
            std::initializer_list<const char*> slots);
  /// An update of one parameter, and the rule that makes it.
  struct ParameterStep {
    WeightUpdate update;
    UpdateRule rule;
  };
  /// The rule with the constants of the step.
  [[nodiscard]] const UpdateRule& step_rule() const { return rule_; }
  [[nodiscard]] const Quantizer& state_format() const { return options_.state; }
  /// The value of an option that the optimizer takes.
  [[nodiscard]] double option(std::string_view name) const { return options_.values.find(name)->second; }
  [[nodiscard]] Array& slot(std::size_t slot, std::size_t parameter) {
    return slots_[slot].arrays[parameter];
  }

 private:
  /// The rule with the constants of the step numbered `steps()`, from 1.
  [[nodiscard]] virtual UpdateRule rule(double learning_rate) const = 0;
  /// An update before the rule's loop over the weights: by default as it comes, by the step's rule.
  [[nodiscard]] virtual ParameterStep parameter_step(std::size_t /*index*/, const WeightUpdate& update) {
    return {update, rule_};
  }

  struct Slot {
    std::string name;
    std::vector<Array> arrays;
    const MomentFormat* format = nullptr;  ///< null: that of the step's arithmetic
  };
  void choose_formats();
  OptimizerOptions options_;
  UpdateRule rule_;
  std::vector<std::string> parameters_;
  std::vector<Slot> slots_;
  std::int64_t steps_ = 0;
};

/// An optimizer of the class `Own`; `parameters` outlives it.
template <typename Own>
[[nodiscard]] std::unique_ptr<Optimizer> make_as(const ParameterStore& parameters,
                                                 const OptimizerOptions& options) {
  return std::make_unique<Own>(parameters, options);
}

}  // namespace halfscope
