// An experiment: arms that differ in one thing, what they have in common, and what their results say.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/claim.hpp"
#include "experiments/runner/harm.hpp"
#include "experiments/runner/settings.hpp"
#include "sim/train/config.hpp"

namespace halfscope {

struct Arm {
  std::string name;
  std::string summary;
  Settings settings;
  Settings full_settings{};  ///< what differs at full size, over the experiment's
};

/// What all-reduces of an arm's seeds lost together, as shares.
struct AllReduceLosses {
  std::int64_t ranks = 1;
  double stagnated = 0;        ///< of the adds
  double flushed = 0;          ///< of the addends, on their way to the wire
  double overflowed = 0;       ///< of the means, from finite addends
  double stagnated_steps = 0;  ///< of the steps: with stagnated adds, and nothing infinite by the reduction
};

/// An arm's results over its seeds. `mean`, `low` and `high` (a 95 % interval, from two seeds on) are over
/// the seeds that did not diverge, and are empty where none did.
struct ArmSummary {
  std::string arm;
  std::vector<std::optional<double>> values{};  ///< per seed; empty where it diverged
  std::optional<double> mean{}, low{}, high{};
  std::optional<double> accuracy{};  ///< percent, mean; empty where it is the metric or not known
  std::int64_t diverged = 0;
  std::optional<std::int64_t> diverged_step{};  ///< the earliest
  std::optional<double> lost_updates{};         ///< mean fraction
  /// Fractions of the non-zero elements of all observed gradients, means over the seeds.
  std::optional<double> flushed{}, subnormal{}, overflow{};
  std::optional<double> skipped{};               ///< steps of the model's first loss, mean
  std::optional<double> further_skipped{};       ///< the same of all further losses; empty without any
  std::optional<double> last_skipped{};          ///< the latest skipped step of any seed
  std::optional<double> final_scale_log2{};      ///< mean
  std::optional<double> first_at_final_scale{};  ///< the first step that had the final scale, mean
  std::optional<double> seconds_per_step{};      ///< median
  std::optional<double> peak_device_bytes{};     ///< the most of any seed; empty where none says
  std::optional<double> peak_step_bytes{};       ///< counted, the most of any seed; empty where none says
  std::optional<AllReduceLosses> all_reduce{};   ///< empty of one rank
  std::vector<std::string> overflows{};  ///< in words, a line per step, of the first seed that had any
  /// Settings in which its seeds differ; such seeds have no mean.
  std::vector<std::string> mixed{};
};

/// What loss scaling at an arm's scale should flush to zero, and what it did: shares of one tensor's elements
/// at the first step, over all seeds together. The prediction comes from the FP32 run's histogram alone.
struct UnderflowPrediction {
  std::string arm;
  std::string tensor;
  std::string role;
  double scale = 1;
  std::int64_t elements = 0;  ///< of all casts and seeds
  double predicted = 0;
  double counted = 0;
};

/// Sums of one kind and length under one accumulation model, against the exact ones.
struct AccumulationRow {
  std::string terms;  ///< what is added up, in words
  std::string model;
  std::int64_t count = 0;                  ///< terms of each sum, K
  std::optional<double> relative_error{};  ///< median over the sums that stayed finite; empty where none did
  double overflowed = 0;                   ///< share of the sums
  double stagnated = 0;                    ///< share of the adds (of a tensor core: of its steps)
};

/// FP16 means of gradients over ranks in one order and division, against the exact means.
struct AllReduceRow {
  std::string gradients{};  ///< in words
  std::string order, division;
  std::int64_t ranks = 0;
  std::optional<double> relative_error{};  ///< root mean square over the finite means; empty without any
  double stagnated = 0;                    ///< share of the adds
  double flushed = 0;                      ///< share of the addends
  double overflowed = 0;                   ///< share of the means
};

/// CTC whose path likelihoods are in FP16, beside FP32, on four utterances of one length.
struct CtcPrecisionRow {
  std::int64_t frames = 0, labels = 0;
  double deviation = 0;  ///< of the logits
  double loss = 0, fp16_loss = 0;
  double gradient_error = 0;  ///< distance of the gradients over the length of FP32's
  double cosine = 0;          ///< of the angle between the gradients
};

/// How two values of a metric are compared in a sentence.
enum class Comparison : std::uint8_t { points, difference, ratio };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<Comparison>{"points", "difference", "ratio"};

/// Metric that an experiment compares its arms by.
struct ReportedMetric {
  std::string key = "metric";  ///< of a run's summary.json: the model's own metric, or train_loss
  std::string name = "test accuracy";
  std::string unit = "%";  ///< empty for a plain number
  Comparison comparison = Comparison::points;
  bool lower_is_better = false;
  int digits = 2;  ///< after the decimal point

  bool operator==(const ReportedMetric&) const = default;
};

/// Whether a table says when steps were skipped, and when the loss scale came to where it ended.
enum class ScaleColumns : std::uint8_t { hidden, shown };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<ScaleColumns>{"hidden", "shown"};

/// Whether a table says how many bytes a step takes.
enum class MemoryColumn : std::uint8_t { hidden, shown };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<MemoryColumn>{"hidden", "shown"};

/// Whether a table has a line per arm.
enum class ArmLines : std::uint8_t { hidden, shown };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<ArmLines>{"hidden", "shown"};

/// How large the networks, batches and images of an experiment are.
enum class RunSize : std::uint8_t {
  small,  ///< minutes on two cores: where the paper's losses average over millions of positions,
          ///< `loss_weight` stands for them
  full,   ///< as many real positions, on one data-center GPU
  smoke,  ///< seconds, to see that everything runs: the results mean nothing
};
template <>
inline constexpr std::array<std::string_view, 3> enum_names<RunSize>{"small", "full", "smoke"};

/// A run that has no result.
struct UnfinishedRun {
  std::string arm;
  std::int64_t seed = 0;
  std::string status;  ///< RUNNING, STOPPED, FAILED and the reason, or not_begun_status
};
inline constexpr const char* not_begun_status = "not begun";

/// Whether a setting changes what is trained, or only what is counted on the way.
enum class Effect : std::uint8_t { training, counts };

/// A setting of finished runs that is not the experiment's own.
struct SettingDifference {
  std::string key, own, found;
  std::vector<std::string> arms;  ///< with runs that have it; empty: all
  Effect effect = Effect::training;
};

struct ComparedSettings {
  RunSize size = RunSize::small;
  std::vector<SettingDifference> differences{};
};

/// The arms that have results, in the experiment's order.
struct ExperimentSummary {
  ReportedMetric metric{};
  std::vector<ArmSummary> arms;
  ComparedSettings settings{};
  std::vector<UnfinishedRun> unfinished{};
  /// Per arm in the order of the backward pass, nearest the loss first; empty where the experiment has none.
  std::vector<UnderflowPrediction> predictions{};
  HarmEvidence harm{};  ///< empty where the experiment has no harm_tasks
  /// The arm called `name`, null where it was not run.
  [[nodiscard]] const ArmSummary* find(std::string_view name) const;
};

/// A row of a table of the paper's: what two arms stand for, and what it reports for them in the metric's
/// unit.
struct PublishedRow {
  std::string name;
  std::string baseline, arm;
  std::optional<double> paper_baseline{}, paper_arm{};  ///< empty: the paper has no such row
};

/// Whether `tools/reproduce` runs an experiment by default, or only with --all.
enum class QuickSet : std::uint8_t { included, left_out };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<QuickSet>{"included", "left_out"};

struct Experiment {
  std::string name;
  std::string base{};  ///< the built-in experiment whose tables and verdict it has; empty: it is built in, or
                       ///< has none
  int place = 0;       ///< in the table of experiments, which follows the paper, from 1; 0: not in it
  std::string summary{};
  std::string paper{};  ///< what "Mixed Precision Training" reports, and where
  Claim claim{};        ///< judged where there is a verdict
  ReportedMetric metric{};
  Settings settings{};              ///< of every arm
  Settings full_settings{};         ///< what differs at full size, over the arms' own
  std::vector<std::string> varied;  ///< keys that the arms differ in; they cannot be set
  /// The arm whose histograms predict what the others flush; empty: no prediction.
  std::string predicts_from{};
  std::vector<Arm> arms;
  /// Arms of --quick; empty: all.
  std::vector<std::string> quick_arms{};
  QuickSet quick_set = QuickSet::included;
  /// Arms of --size full: FP32, mixed precision, and those that do harm; empty: all.
  std::vector<std::string> full_arms{};
  ScaleColumns scale_columns = ScaleColumns::hidden;
  MemoryColumn memory_column = MemoryColumn::hidden;
  ArmLines arm_lines = ArmLines::shown;
  /// A table of the paper's with ours beside it; empty: no such table.
  std::vector<PublishedRow> published{};
  /// Tasks whose trainings predictors of harm are judged by; empty: no such table.
  std::vector<HarmTask> harm_tasks{};
  /// A table that needs no training, computed where a report is made; null where there is none.
  std::vector<AccumulationRow> (*accumulation)() = nullptr;
  /// Another, of a loss; null where there is none.
  std::vector<CtcPrecisionRow> (*ctc_precision)() = nullptr;
  /// Another, of means over ranks; null where there is none.
  std::vector<AllReduceRow> (*all_reduces)() = nullptr;
  /// Compares arms of a built-in experiment in words; null: no verdict.
  std::string (*verdict)(const ExperimentSummary& summary) = nullptr;
  std::vector<std::string> verdict_arms{};  ///< arms that `verdict` is about; empty: all

  /// The arm called `name`; throws InvalidArgument with the nearest name where there is none.
  [[nodiscard]] const Arm& arm(std::string_view arm_name) const;
};

}  // namespace halfscope
