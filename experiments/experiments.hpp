// The experiments that have a name: one line per experiment.
#pragma once

#include <vector>

#include "experiments/batchnorm_reduction.hpp"
#include "experiments/dose.hpp"
#include "experiments/language_model.hpp"
#include "experiments/master_copy.hpp"
#include "experiments/reductions.hpp"
#include "experiments/scale_sweep.hpp"
#include "experiments/softmax_reduction.hpp"

namespace halfscope {

inline const std::vector<Experiment>& experiment_table() {
  static const std::vector<Experiment> table{
      make_master_copy(), make_master_copy_sgd(),   make_batchnorm_reduction(),
      make_reductions(),  make_scale_sweep(),       make_language_model_loss_scale(),
      make_dose(),        make_softmax_reduction(),
  };
  return table;
}

}  // namespace halfscope
