// The experiments that have a name: one line per experiment.
#pragma once

#include <vector>

#include "experiments/ablations/accumulation_error.hpp"
#include "experiments/ablations/averaging_sweep.hpp"
#include "experiments/ablations/batchnorm_reduction.hpp"
#include "experiments/ablations/detection_loss_scale.hpp"
#include "experiments/ablations/language_model.hpp"
#include "experiments/ablations/master_copy.hpp"
#include "experiments/ablations/negative_controls.hpp"
#include "experiments/ablations/scale_sweep.hpp"
#include "experiments/ablations/scaler_comparison.hpp"
#include "experiments/ablations/segmentation_loss_scale.hpp"
#include "experiments/ablations/softmax_reduction.hpp"

namespace halfscope {

/// In the order of the paper's sections: the master copy, loss scaling, reductions.
inline const std::vector<Experiment>& experiment_table() {
  static const std::vector<Experiment> table{
      make_master_copy(),                // 3.1, Fig. 2
      make_master_copy_sgd(),            // 3.1
      make_detection_loss_scale(),       // 3.2, Table 2, Fig. 3
      make_language_model_loss_scale(),  // 3.2, Fig. 5
      make_segmentation_loss_scale(),    // 3.2
      make_scale_sweep(),                // 3.2: choosing the factor
      make_scaler_comparison(),          // 3.2: choosing it while training
      make_averaging_sweep(),            // 3.2: when it is needed
      make_negative_controls(),          // 3.2: when it is not
      make_batchnorm_reduction(),        // 3.3
      make_softmax_reduction(),          // 3.3
      make_accumulation_error(),         // 3.3
  };
  return table;
}

}  // namespace halfscope
