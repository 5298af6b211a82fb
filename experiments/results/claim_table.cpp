// Lays out expectations with what bears on them.
#include "experiments/results/claim_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/results/judgement.hpp"
#include "experiments/results/verdict.hpp"

namespace halfscope {
namespace {

std::string spaced(std::string_view name) {
  std::string words(name);
  std::ranges::replace(words, '_', ' ');
  return words;
}

/// "0.35", or "1.25 %" where the metric is compared by ratio.
std::string amount(const ReportedMetric& metric, double value) {
  if (metric.comparison == Comparison::ratio) return fmt::format("{:.2f} %", 100 * value);
  return fmt::format("{:.{}f}", value, metric.digits);
}

std::string seeds_text(const Difference& difference) {
  std::string text = fmt::format("{}", difference.seeds);
  if (difference.pairing == Pairing::independent) text += ", unpaired";
  const auto note = [&](std::int64_t alone, const char* which) {
    if (alone > 0) text += fmt::format(", {} of {} diverged", alone, which);
  };
  note(difference.arm_diverged_alone, "arm");
  note(difference.baseline_diverged_alone, "baseline");
  return text;
}

class Row {
 public:
  Row(const Expectation& expectation, const ExperimentSummary& summary)
      : metric_(summary.metric), expectation_(expectation) {
    const ArmSummary *arm = summary.find(expectation.arm), *baseline = summary.find(expectation.baseline);
    if (arm != nullptr && baseline != nullptr) difference_ = difference_of(metric_, *arm, *baseline);
  }

  [[nodiscard]] std::vector<Cell> cells(Judgement judgement) const {
    return {expectation_.arm,
            expectation_.baseline,
            spaced(name_of(expectation_.expected)),
            expectation_.margin > 0 ? amount(metric_, expectation_.margin) : "0",
            difference_.behind ? amount(metric_, *difference_.behind) : "-",
            interval(),
            least(),
            seeds_text(difference_),
            in_words(judgement)};
  }

 private:
  [[nodiscard]] std::string interval() const {
    if (!difference_.low) return "-";
    return fmt::format("{} .. {}", amount(metric_, *difference_.low), amount(metric_, *difference_.high));
  }

  [[nodiscard]] std::string least() const {
    const std::optional<double> least = detectable(difference_);
    return least ? amount(metric_, *least) : "-";
  }

  const ReportedMetric& metric_;
  const Expectation& expectation_;
  Difference difference_{};
};

bool have_one_seed(const ExperimentSummary& summary) {
  return std::ranges::all_of(summary.arms, [](const ArmSummary& arm) { return arm.values.size() < 2; });
}

}  // namespace

Table claim_table(const Experiment& experiment, const ExperimentSummary& summary) {
  Table table{{{"arm", "arm"},
               {"baseline", "beside", 3},
               {"expected", "expected", 2},
               {"margin", "margin", 4},
               {"behind", "behind by", 5},
               {"interval", "95 % interval", 1},
               {"detectable", "detectable", 7},
               {"seeds", "seeds", 6},
               {"judgement", "judged"}},
              {}};
  const std::vector<Judgement> judged = judge_claim(experiment, summary);
  for (std::size_t i = 0; i < judged.size(); ++i)
    table.rows.push_back(Row(experiment.claim.expectations[i], summary).cells(judged[i]));
  return table;
}

std::string claim_outcome(const Experiment& experiment, const ExperimentSummary& summary) {
  const std::vector<Judgement> judged = judge_claim(experiment, summary);
  const auto count = [&](Judgement judgement) { return std::ranges::count(judged, judgement); };
  switch (together(judged)) {
    case Judgement::holds:
      return "Holds.";
    case Judgement::does_not_hold:
      return fmt::format("Does not hold: {} of {} expectations.", count(Judgement::does_not_hold),
                         judged.size());
    case Judgement::undecided:
      return fmt::format("Undecided: {} of {} expectations; `halfscope run {} --until-decided` adds seeds.",
                         count(Judgement::undecided), judged.size(), experiment.name);
    case Judgement::not_judged:
      break;
  }
  if (judged.empty()) return "Not judged: the experiment expects nothing of its arms.";
  const std::string withheld = why_withheld(summary);
  if (!withheld.empty()) return fmt::format("Not judged: {}.", withheld);
  if (have_one_seed(summary)) return "Not judged: one seed has no interval; give --seeds 3 or more.";
  return "Not judged: an arm of it has fewer than two seeds.";
}

std::vector<std::string> margin_reasons(const Experiment& experiment) {
  std::vector<std::string> reasons;
  for (const Expectation& expectation : experiment.claim.expectations) {
    const std::string& reason = expectation.reason;
    if (!reason.empty() && std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(reason);
  }
  return reasons;
}

}  // namespace halfscope
