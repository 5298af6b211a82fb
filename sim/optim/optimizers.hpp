// The optimizers that have a name: one line per optimizer.
#pragma once

#include <array>
#include <string_view>

#include "sim/optim/optimizer.hpp"

namespace halfscope {

/// `parameters` outlives the optimizer.
[[nodiscard]] std::unique_ptr<Optimizer> make_sgd(const ParameterStore& parameters,
                                                  const OptimizerOptions& options);

/// `parameters` outlives the optimizer.
[[nodiscard]] std::unique_ptr<Optimizer> make_adam(const ParameterStore& parameters,
                                                   const OptimizerOptions& options);

/// `parameters` outlives the optimizer. `weight_decay` is decoupled from the moments.
[[nodiscard]] std::unique_ptr<Optimizer> make_adamw(const ParameterStore& parameters,
                                                    const OptimizerOptions& options);

/// `parameters` outlives the optimizer.
[[nodiscard]] std::unique_ptr<Optimizer> make_adagrad(const ParameterStore& parameters,
                                                      const OptimizerOptions& options);

/// `parameters` outlives the optimizer. `beta2` is the decay of the mean of squares.
[[nodiscard]] std::unique_ptr<Optimizer> make_rmsprop(const ParameterStore& parameters,
                                                      const OptimizerOptions& options);

struct OptimizerEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Optimizer> (*make)(const ParameterStore& parameters, const OptimizerOptions& options);
};

inline constexpr std::array optimizer_table{
    OptimizerEntry{"sgd", "stochastic gradient descent with momentum", make_sgd},
    OptimizerEntry{"adam", "Adam with bias correction", make_adam},
    OptimizerEntry{"adamw", "Adam with decoupled weight decay", make_adamw},
    OptimizerEntry{"adagrad", "Adagrad: a sum of squares per weight", make_adagrad},
    OptimizerEntry{"rmsprop", "RMSProp with momentum, epsilon within the root", make_rmsprop},
};

}  // namespace halfscope
