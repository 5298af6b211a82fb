// Weights that learn from one loss of a step: its passes, and the update that follows.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <halfscope/device/step_graph.hpp>

#include "sim/models/model.hpp"
#include "sim/optim/compensated_sum.hpp"
#include "sim/train/build.hpp"
#include "sim/train/rank_gradients.hpp"
#include "sim/train/step_scalars.hpp"
#include "sim/train/what_if_updates.hpp"

namespace halfscope {

/// Factors of the gradients before an update, multiplied one after the other.
struct GradientFactors {
  float unscale = 1;
  float clip = 1;
};

/// A loss without the weights that learn from it.
struct NamedLoss {
  std::string name;
  std::function<TensorRef(Tape& tape, const Batch& batch)> of;
};

class Learner {
 public:
  /// `settings`, `store`, whose weights are on the run's device, and `all`, the stores of the model's losses,
  /// outlive it.
  Learner(const RunSettings& settings, NamedLoss loss, ParameterStore& store,
          std::vector<ParameterStore*> all);

  [[nodiscard]] const NamedLoss& loss() const { return loss_; }
  [[nodiscard]] ParameterStore& store() const { return *store_; }
  [[nodiscard]] Optimizer& optimizer() const { return *optimizer_; }
  /// The part that the stored weights lack, if updates are added with compensation.
  [[nodiscard]] CompensatedWeights& compensated() { return compensated_; }
  /// How steps are launched on the device; null unless the environment's HALFSCOPE_CUDA_GRAPH is "on".
  [[nodiscard]] const StepGraph* graph() const { return graph_.get(); }

  /// The step's batches, and what is measured of the gradients that they leave.
  struct Passes {
    const std::vector<Batch>& batches;
    double scale = 1;  ///< scale of the loss, besides its weight
    GradientMeasure measure{};
  };
  /// The loss of a step's batches, and what became of their gradients on the way to the ranks' mean.
  struct StepLoss {
    Array loss;
    std::optional<AllReduceCounters> all_reduce{};
  };
  /// Runs forward and backward of the batches under `caster`, one after the other: those of this process's
  /// first rank, of its second and so on, as many micro-batches each as the settings say. The parameters
  /// receive the gradients of their losses times `factor`: of a rank the sum over its micro-batches divided
  /// by their number, of all ranks of all processes the mean that the all-reduce makes. Returns the mean of
  /// the losses.
  StepLoss run_batches(Caster& caster, double factor, const std::vector<Batch>& batches) const;
  /// Runs the batches of the step that `context` begins, as a CUDA graph where that is asked for and there is
  /// one rank.
  struct PassResults {
    StepScalars scalars;
    std::optional<AllReduceCounters> all_reduce{};
  };
  PassResults run_passes(Caster& caster, const StepContext& context, const Passes& passes);
  /// An update's learning rate, and where what became of it is written besides what trackers see, if
  /// anywhere.
  struct UpdateContext {
    double learning_rate = 0;
    StepObservations* observations = nullptr;
    std::vector<WhatIfUpdates>* what_if = nullptr;
  };
  /// Adds the optimizer's updates from gradients that carry `scale` and have the norm of `scalars`. Returns
  /// whether the weights are finite after it.
  bool update_weights(Caster& caster, const StepScalars& scalars, double scale, const UpdateContext& context);
  /// Shows `caster` the unscaled gradients and the weights that the update has made of them.
  void show_update(Caster& caster) const;
  [[nodiscard]] bool weights_finite() const;

 private:
  /// Consecutive micro-batches of one rank; `first` is the number of the first in the step.
  struct Part {
    std::span<const Batch> batches;
    std::int32_t first = 0;
  };
  Array run_micro_batches(Caster& caster, double factor, const Part& part) const;

  const RunSettings* settings_;
  NamedLoss loss_;
  ParameterStore* store_;
  std::unique_ptr<Optimizer> optimizer_;
  CompensatedWeights compensated_;
  GradientFactors factors_{};  ///< that the gradients at hand are to be multiplied by
  std::unique_ptr<StepGraph> graph_{};
  std::vector<ParameterStore*> all_stores_;
  std::unique_ptr<RankGradients> ranks_{};  ///< null of one rank
};

}  // namespace halfscope
