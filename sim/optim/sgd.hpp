// Stochastic gradient descent with momentum.
#pragma once

#include "sim/optim/optimizer.hpp"

namespace halfscope {

/// `parameters` outlives the optimizer.
[[nodiscard]] std::unique_ptr<Optimizer> make_sgd(const ParameterStore& parameters,
                                                  const OptimizerOptions& options);

}  // namespace halfscope
