// The optimizers that have a name: one line per optimizer.
#pragma once

#include <array>
#include <string_view>

#include "sim/optim/adam.hpp"
#include "sim/optim/sgd.hpp"

namespace halfscope {

struct OptimizerEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Optimizer> (*make)(const ParameterStore& parameters, const OptimizerOptions& options);
};

inline constexpr std::array optimizer_table{
    OptimizerEntry{"sgd", "stochastic gradient descent with momentum", make_sgd},
    OptimizerEntry{"adam", "Adam with bias correction", make_adam},
};

}  // namespace halfscope
