// An experiment: arms that differ in one thing, what they have in common, and what their results are judged
// by.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/definition/claim.hpp"
#include "experiments/definition/harm_task.hpp"
#include "experiments/definition/published_row.hpp"
#include "experiments/definition/reported_metric.hpp"
#include "experiments/definition/sentence.hpp"
#include "experiments/definition/settings.hpp"
#include "sim/train/config.hpp"

namespace halfscope {

struct Arm {
  std::string name;
  std::string summary;
  Settings settings;
  Settings full_settings{};  ///< differences at full size, over the experiment's
  std::string baseline{};    ///< arm that it is compared with; empty: it is one, or there is none
};

/// How large the networks, batches and images of an experiment are.
enum class RunSize : std::uint8_t {
  small,  ///< minutes on two cores: where the paper's losses are means over millions of positions, a factor
          ///< on the loss, `loss_weight`, stands for them
  full,   ///< as many real positions, on one data-center GPU
  smoke,  ///< seconds, to see that everything runs: the results mean nothing
};
template <>
inline constexpr std::array<std::string_view, 3> enum_names<RunSize>{"small", "full", "smoke"};

/// Whether a part of a report is printed.
enum class Shown : std::uint8_t { hidden, shown };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<Shown>{"hidden", "shown"};

/// Parts of a report that an experiment chooses.
struct ReportParts {
  Shown scale =
      Shown::hidden;  ///< columns: when steps were skipped, when the loss scale came to where it ended
  Shown memory = Shown::hidden;  ///< column: bytes of a step
  Shown arms = Shown::shown;     ///< a line per arm

  bool operator==(const ReportParts&) const = default;
};

/// Whether `tools/reproduce` runs an experiment by default, or only with --all.
enum class QuickSet : std::uint8_t { included, left_out };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<QuickSet>{"included", "left_out"};

struct Experiment {
  std::string name;
  std::string base{};  ///< the built-in experiment whose tables and verdict it has; empty: it has its own
  int place = 0;       ///< in the table of experiments, which follows the paper, from 1; 0: not in it
  std::string summary{};
  std::string paper{};  ///< result in "Mixed Precision Training", and its place there
  Claim claim{};
  ReportedMetric metric{};
  Settings settings{};              ///< settings of every arm
  Settings full_settings{};         ///< differences at full size, over the arms' own
  std::vector<std::string> varied;  ///< keys that the arms differ in; they cannot be set
  /// The arm whose histograms predict what the others flush; empty: no prediction.
  std::string predicts_from{};
  std::vector<Arm> arms;
  std::vector<std::string> quick_arms{};  ///< arms of --quick; empty: all
  QuickSet quick_set = QuickSet::included;
  /// Arms of --size full: FP32, mixed precision, and those that do harm; empty: all.
  std::vector<std::string> full_arms{};
  ReportParts report{};
  std::vector<std::string> analyses{};      ///< findings beside the arms, by name
  std::vector<PublishedRow> published{};    ///< a table of the paper's that ours stands beside; empty: none
  std::vector<HarmTask> harm_tasks{};       ///< tasks by whose trainings predictors of harm are judged
  std::vector<Sentence> verdict{};          ///< compares the arms in words; empty: no verdict
  std::vector<std::string> verdict_arms{};  ///< arms that claim and verdict are about; empty: all

  [[nodiscard]] bool has_arm(std::string_view arm_name) const;
  /// The arm called `name`; throws InvalidArgument with the nearest name where there is none.
  [[nodiscard]] const Arm& arm(std::string_view arm_name) const;
};

}  // namespace halfscope
