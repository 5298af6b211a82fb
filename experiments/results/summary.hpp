// An experiment's results: its arms over their seeds, findings beside them, and runs without a result.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/definition/experiment.hpp"
#include "experiments/results/analysis_result.hpp"

namespace halfscope {

/// An arm's results over its seeds. `mean`, `low` and `high` (a 95 % interval, from two seeds on) are over
/// the seeds that did not diverge, and are empty where none did.
struct ArmSummary {
  std::string arm;
  std::string baseline{};             ///< arm that it is compared with; empty: it is one, or there is none
  std::string loss_scale = "none";    ///< the setting
  double loss_weight = 1;             ///< the setting
  bool in_fp32 = false;               ///< gradients are FP32: their flushed share is what FP16 would flush
  std::vector<std::int64_t> seeds{};  ///< ascending
  std::vector<std::optional<double>> values{};  ///< per seed; empty where it diverged
  std::optional<double> mean{}, low{}, high{};
  std::int64_t diverged = 0;
  std::optional<std::int64_t> diverged_step{};  ///< the earliest
  std::int64_t beyond = 0;  ///< seeds among the diverged that ended far beyond the untrained model
  std::vector<std::optional<double>> columns{};  ///< measured, in the order of arm_columns
  std::vector<std::string> overflows{};  ///< in words, a line per step, of the first seed that had any
  /// Settings in which its seeds differ; such seeds have no mean.
  std::vector<std::string> mixed{};

  /// The measured column called `key`; empty where it is not known. Throws InvalidArgument for another key.
  [[nodiscard]] std::optional<double> column(std::string_view key) const;
};

/// A run that has no result.
struct UnfinishedRun {
  std::string arm;
  std::int64_t seed = 0;
  std::string status;  ///< RUNNING, STOPPED, FAILED and the reason, or one of the next two
};
inline constexpr const char* not_begun_status = "not begun";
inline constexpr const char* done_status = "DONE";  ///< without its summary, which something has removed

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
  std::vector<AnalysisResult> findings{};

  /// The arm called `name`, null where it was not run.
  [[nodiscard]] const ArmSummary* find(std::string_view name) const;
};

}  // namespace halfscope
