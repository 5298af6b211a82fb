// The optimizers that have a name: one line per optimizer.
#pragma once

#include <array>
#include <string_view>

#include "sim/optim/constant_lint.hpp"
#include "sim/optim/optimizer.hpp"

namespace halfscope {

/// An optimizer as its own file defines it.
struct OptimizerKind {
  /// `parameters` outlives the optimizer; `options` holds every option that it takes.
  std::unique_ptr<Optimizer> (*make)(const ParameterStore& parameters, const OptimizerOptions& options);
  OptionTable options{};
  /// Finds the constants that die in the formats of state and weights; null: it has none.
  void (*lint)(const OptimizerLint& lint) = nullptr;
};

extern const OptimizerKind sgd_kind;
extern const OptimizerKind adam_kind;
extern const OptimizerKind adamw_kind;
extern const OptimizerKind stable_adamw_kind;
extern const OptimizerKind adagrad_kind;
extern const OptimizerKind rmsprop_kind;
extern const OptimizerKind muon_kind;

struct OptimizerEntry {
  std::string_view name;
  std::string_view summary;
  const OptimizerKind& kind;
};

inline constexpr std::array optimizer_table{
    OptimizerEntry{"sgd", "stochastic gradient descent with momentum", sgd_kind},
    OptimizerEntry{"adam", "Adam with bias correction", adam_kind},
    OptimizerEntry{"adamw", "Adam with decoupled weight decay", adamw_kind},
    OptimizerEntry{"stable_adamw", "AdamW, slower for tensors whose gradients outgrow their mean squares",
                   stable_adamw_kind},
    OptimizerEntry{"adagrad", "Adagrad: a sum of squares per weight", adagrad_kind},
    OptimizerEntry{"rmsprop", "RMSProp with momentum, epsilon within the root", rmsprop_kind},
    OptimizerEntry{"muon", "Muon: orthogonal updates of matrices by Newton-Schulz steps, AdamW for the rest",
                   muon_kind},
};

}  // namespace halfscope
