// Adam (Kingma & Ba, ICLR 2015).
#pragma once

#include "sim/optim/optimizer.hpp"

namespace halfscope {

/// `parameters` outlives the optimizer.
[[nodiscard]] std::unique_ptr<Optimizer> make_adam(const ParameterStore& parameters,
                                                   const OptimizerOptions& options);

}  // namespace halfscope
