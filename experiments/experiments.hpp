// The experiments that have a name: one line per experiment.
#pragma once

#include <vector>

#include "experiments/batchnorm_reduction.hpp"
#include "experiments/detection_loss_scale.hpp"
#include "experiments/master_copy.hpp"
#include "experiments/no_harm.hpp"
#include "experiments/reductions.hpp"
#include "experiments/scale_sweep.hpp"
#include "experiments/segmentation_loss_scale.hpp"

namespace halfscope {

inline const std::vector<Experiment>& experiment_table() {
  static const std::vector<Experiment> table{
      make_master_copy(), make_master_copy_sgd(), make_batchnorm_reduction(),
      make_no_harm(),
      make_reductions(),  make_scale_sweep(),
      make_master_copy(),          make_master_copy_sgd(),         make_batchnorm_reduction(),
      make_detection_loss_scale(), make_segmentation_loss_scale(),
  };
  return table;
}

}  // namespace halfscope
