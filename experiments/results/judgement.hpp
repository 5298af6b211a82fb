// Judgement of an expectation by the 95 % interval of a difference over seeds: one definition, for claims,
// reports and figures.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/results/difference.hpp"
#include "experiments/results/summary.hpp"

namespace halfscope {

/// Undecided: the seeds leave it open. Not judged: an arm has no result, one seed alone, or settings that are
/// not the experiment's own.
enum class Judgement : std::uint8_t { holds, does_not_hold, undecided, not_judged };
template <>
inline constexpr std::array<std::string_view, 4> enum_names<Judgement>{"holds", "does_not_hold", "undecided",
                                                                       "not_judged"};

/// "does not hold".
[[nodiscard]] std::string in_words(Judgement judgement);

/// true or false where it is decided.
[[nodiscard]] std::optional<bool> decided(Judgement judgement);

/// Share of a baseline's metric that a harmless arm may be behind where no claim says how much. Trainings
/// that round differently and lose nothing scatter by up to 3 %.
inline constexpr double usual_margin = 0.05;

/// `as_good` holds where the interval lies within the margin on both sides, and does not where it lies beyond
/// it on one. `worse` holds where the interval lies beyond the margin, and does not where none of it does;
/// `better` likewise. Runs that diverge alone, in one arm and not with the same seed in the other, count as
/// beyond any margin once they are too many for chance: two arms that diverge equally often would show so
/// many in at most 2.5 % of the cases. Fewer leave the expectation undecided, unless all that finished bears
/// out `worse`.
[[nodiscard]] Judgement judge(const Difference& difference, Expected expected, double margin);

/// Not judged where an arm of it has no result.
[[nodiscard]] Judgement judge(const ExperimentSummary& summary, const Expectation& expectation);

/// All of a claim: does not hold where one does not, else not judged or undecided where one is; not judged
/// where there are none.
[[nodiscard]] Judgement together(const std::vector<Judgement>& expectations);

/// Whether `arm` ends as good as its baseline or better: not behind by more than the margin within which the
/// claim expects it, or by the usual one where the claim does not. Empty where the seeds leave it open or
/// there is no baseline.
[[nodiscard]] std::optional<bool> as_good(const Experiment& experiment, const ExperimentSummary& summary,
                                          const ArmSummary& arm);

/// The distance between the best and the worst seed of an arm; empty below two that did not diverge.
[[nodiscard]] std::optional<double> seed_spread(const ArmSummary& arm);

}  // namespace halfscope
