// One training run in memory: model, data, optimizer and scaler, advanced step by step.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include <halfscope/io/safetensors/safetensors.hpp>

#include "sim/data/sampler.hpp"
#include "sim/train/fp32_reference.hpp"
#include "sim/train/learner.hpp"
#include "sim/train/zero_causes.hpp"

namespace halfscope {

/// All weight gradients together, while they carried the step's scale.
struct GradientRecord {
  bool finite = true;
  std::optional<float> max_abs{};  ///< after rounding; infinite or NaN where they are not finite
  std::optional<ExponentHistogram> histogram{};  ///< before rounding
};

/// Record of one loss of a step.
struct ObjectiveRecord {
  std::string name;  ///< empty of the model's first loss
  float loss = 0;    ///< before the step's update, not scaled
  double scale = 1;
  bool skipped = false;
  std::optional<GradientRecord> gradients{};
  std::optional<AllReduceCounters> all_reduce{};  ///< empty with one rank
};

/// Record of a step: the model's first loss, and any further ones. `observations` is there on every
/// observe_every-th step and on the first, `overflow` where the gradients or the weights were not finite any
/// more and the tracker first_overflow is on. Trackers, comparisons and probes see the tensors of all losses.
struct StepRecord {
  std::int64_t step = 0;  ///< from 1
  float loss = 0;         ///< before the step's update, not scaled
  double scale = 1;
  double learning_rate = 0;
  bool skipped = false;
  std::optional<GradientRecord> gradients{};
  std::optional<AllReduceCounters> all_reduce{};  ///< empty with one rank
  bool diverged = false;                          ///< an infinity or a NaN has reached the master weights
  std::optional<StepObservations> observations{};
  std::optional<StepObservations> overflow{};
  std::vector<Fp32Comparison> fp32_reference{};  ///< on every fp32_reference_every-th step and on the first
  std::vector<ZeroCauses> zero_causes{};         ///< on every zero_causes_every-th step and on the first
  std::vector<WhatIfUpdates> what_if{};          ///< on observed steps, where the settings name formats
  std::vector<ScaleProbe> probes{};              ///< on every probe_every-th step and on the first
  std::vector<ObjectiveRecord> further{};        ///< in their order; without those behind one that diverged
};

struct Evaluation {
  double loss = 0;                   ///< mean over the test set
  double metric = 0;                 ///< the model's own
  std::optional<double> accuracy{};  ///< percent, where the metric is another and it is known
  Array samples{};                   ///< images that a generator has made; empty of other models
};

class Trainer {
 public:
  /// Throws InvalidArgument where the settings ask for something that is not there. `dataset` outlives the
  /// trainer.
  Trainer(const RunSettings& settings, const Dataset& dataset);
  Trainer(const TrainConfig& config, const Dataset& dataset) : Trainer(parsed(config), dataset) {}

  [[nodiscard]] std::int64_t steps_done() const { return steps_done_; }
  StepRecord step();
  [[nodiscard]] Evaluation evaluate();
  /// Log-probabilities of the test examples' labels under the run's policy less those under its second one;
  /// empty where the settings have none.
  [[nodiscard]] std::optional<LogProbabilityGap> compare_executions();
  /// The metric of a model whose mean loss is `loss`; empty where it is no function of the loss.
  [[nodiscard]] std::optional<double> metric_at_loss(double loss) const {
    return model_.make_metric()->at_loss(loss);
  }
  /// Takes a test example through the model, which throws InvalidArgument where it learns from other data;
  /// for a second execution where its predictions are no probabilities of labels; and a training example
  /// through every loss where the policy has lists of operations: those that it refuses throw, and each of
  /// its rules is to apply to one.
  void try_example();
  /// False once an infinity or a NaN has reached the master weights: no later step can mend them.
  [[nodiscard]] bool weights_finite() const;

  /// How steps are launched on the device; null unless the environment's HALFSCOPE_CUDA_GRAPH is "on".
  [[nodiscard]] const StepGraph* graph() const { return learners_.front().graph(); }

  /// Takes weights and running statistics over from those of their names, with or without "model." before
  /// them; others stay. Throws InvalidArgument for one of another shape, and where no name is known.
  void start_from(const SafetensorsFile& weights);

  /// Weights, running statistics, optimizer and scaler: all that later steps depend on, in host memory.
  [[nodiscard]] SafetensorsFile checkpoint();
  /// Throws InvalidArgument where the checkpoint is of another network or lacks something.
  void restore(const SafetensorsFile& checkpoint);

 private:
  /// This process's share of the batch of the next step, in as many parts as the settings say: micro-batches
  /// of its first rank, of its second...
  [[nodiscard]] std::vector<Batch> read_batches();
  /// A step of one loss, which it adds to `record`.
  void learn(std::size_t index, const std::vector<Batch>& batches, StepRecord& record);
  void restore_operand_scales(const SafetensorsFile& checkpoint);
  /// Brings the caster to the policy of step `step`.
  void follow_policy(std::int64_t step);
  /// Rounds the weights to the format that they are stored in.
  void store_weights();
  /// Tells the scalers the outcome of a step.
  void update_scalers(const StepRecord& record);
  /// The test examples of an evaluation.
  [[nodiscard]] std::int64_t evaluated_examples() const;
  /// Calls use(batch, its examples) for each batch of an evaluation.
  template <typename Use>
  void each_test_batch(const Use& use) const;
  /// Context of passes that nobody observes and nothing learns from.
  [[nodiscard]] StepContext evaluation_context() const;
  /// Runs a step's forward and backward again under `caster`, from the same weights on the same batches.
  /// Nothing that later steps depend on changes but the gradients, which are kept as they are where
  /// `caster` has the run's own policy and scale.
  void repeat(const Learner& learner, Caster& caster, double loss_scale, const std::vector<Batch>& batches);
  /// Observations of the step's forward and backward by the trackers of overflowing steps.
  StepObservations look_at_step(const Learner& learner, const StepContext& context,
                                const std::vector<Batch>& batches);
  /// Their observations of the step's unscaled gradients and of the weights that its update has made.
  StepObservations look_at_update(const Learner& learner, const StepContext& context);
  /// The scaler of a loss: its own, or one for all.
  [[nodiscard]] LossScaler& scaler_of(std::size_t index) const {
    return *scalers_[std::min(index, scalers_.size() - 1)];
  }
  /// The stores of all losses.
  [[nodiscard]] std::vector<ParameterStore*> stores();
  /// Weights and running statistics, under their names in a checkpoint.
  std::vector<ArrayReference> model_arrays();
  /// Every array that a checkpoint holds, under its name there.
  std::vector<ArrayReference> all_arrays();
  /// The scalers' state, number by number, under its name in a checkpoint.
  struct NamedNumber {
    std::string name;
    ScalerNumber number;
  };
  std::vector<NamedNumber> scaler_numbers();

  /// The examples at `indices`, in host memory wherever training runs.
  [[nodiscard]] Batch read_batch(Split split, std::span<const std::int64_t> indices) const;

  RunSettings settings_;
  const Dataset& dataset_;
  TrackerList trackers_;           // called in observed steps
  TrackerList overflow_trackers_;  // called in steps that overflow
  Caster caster_;
  Model model_;
  std::vector<Learner> learners_{};  ///< one for each loss
  std::vector<std::unique_ptr<LossScaler>> scalers_;
  GradientDetail detail_;           ///< parts of the gradients that the scalers and the records need
  OperandScales operand_scales_{};  ///< delayed ones
  OperandMaxima operand_maxima_{};  ///< maxima of the step at hand
  Sampler sampler_;
  std::int64_t steps_done_ = 0;
};

}  // namespace halfscope
