// Scales that no scaler of constant factors has: their falls tell of no skipped steps.
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <halfscope/scaling/detail/skip_log_reader.hpp>

namespace halfscope {
namespace {

constexpr double least_compared = 16;       // below it decimals that are left out count
constexpr double printed_rounding = 0.005;  // error of a logarithm, for a printed scale

/// A change of the scale from one line to the next, as a logarithm without its sign.
struct Change {
  double log2 = 0;
  std::int64_t line = 0;  ///< the later one
  double scale = 1;       ///< behind it
  double factor = 1;
};

struct Changes {
  std::vector<Change> falls, rises;
  std::vector<Change> single_rises;  ///< between successive steps
  bool are_halvings = true;          ///< or doublings, and several of them
};

Changes changes_of(const std::vector<CountedIterations>& iterations) {
  Changes found;
  const IterationLine* before = nullptr;
  for (const CountedIterations& counted : iterations) {
    const IterationLine& line = counted.line;
    if (!line.scale || *line.scale < least_compared || counted.gap != LogGap::none) before = nullptr;
    if (!line.scale || *line.scale < least_compared) continue;
    if (before != nullptr) {
      const double log2 = std::log2(*line.scale / *before->scale);
      const Change change{std::abs(log2), line.line, *line.scale, *line.scale / *before->scale};
      found.are_halvings = found.are_halvings && std::abs(log2 - std::round(log2)) < printed_rounding;
      if (log2 < -printed_rounding / 4) found.falls.push_back(change);
      if (log2 > printed_rounding) found.rises.push_back(change);
      if (log2 > printed_rounding && line.iteration == before->iteration + 1)
        found.single_rises.push_back(change);
    }
    before = &line;
  }
  return found;
}

/// The factors of the changes, each once.
std::vector<Change> kinds_of(std::vector<Change> changes) {
  std::ranges::stable_sort(changes, {}, &Change::log2);
  std::vector<Change> kinds;
  for (const Change& change : changes)
    if (kinds.empty() || change.log2 > kinds.back().log2 + 4 * printed_rounding) kinds.push_back(change);
  return kinds;
}

/// Whether all changes are powers of the first of them.
bool are_powers(std::span<const Change> kinds) {
  constexpr double near = 0.04, nearest = 0.12;
  return std::ranges::all_of(kinds, [&](const Change& kind) {
    const double powers = kind.log2 / kinds.front().log2;
    return std::abs(powers - std::round(powers)) <= std::min(near * powers, nearest);
  });
}

/// Whether all changes are powers of one factor, but for the smallest, which ends at a bound of the scale.
bool have_common_factor(const std::vector<Change>& changes, double bound) {
  const std::vector<Change> kinds = kinds_of(changes);
  if (are_powers(kinds)) return true;
  const double unit = kinds[1].log2;
  const auto units = std::ranges::count_if(
      changes, [&](const Change& change) { return std::abs(change.log2 - unit) < 4 * printed_rounding; });
  return kinds[0].scale == bound && units > 1 && are_powers(std::span(kinds).subspan(1));
}

/// Changes whose factors are those of no scaler; empty where there are none.
std::vector<Change> uneven_changes(const Changes& changes) {
  constexpr double least_factor = 0.05;  // no scaler lowers its scale by less than a thirtieth
  constexpr std::size_t most_rises = 2;  // a growth, and one up to a largest scale
  if (changes.falls.empty()) return {};
  const auto scales_of = [](const std::vector<Change>& some) {
    return std::ranges::minmax(some, {}, &Change::scale);
  };
  const std::vector<Change> falls = kinds_of(changes.falls), rises = kinds_of(changes.rises);
  if (!changes.are_halvings) {
    const bool is_small = falls.size() > 1 && falls.front().log2 < least_factor;
    if (is_small || !have_common_factor(changes.falls, scales_of(changes.falls).min.scale)) return falls;
    const bool grows_slowly = !rises.empty() && rises.front().log2 < least_factor;
    if (!rises.empty() && !grows_slowly &&
        !have_common_factor(changes.rises, scales_of(changes.rises).max.scale))
      return rises;
  }
  return kinds_of(changes.single_rises).size() > most_rises ? kinds_of(changes.single_rises)
                                                            : std::vector<Change>();
}

}  // namespace

void leave_uneven_scales(std::vector<CountedIterations>& iterations, SkipLog& log) {
  std::vector<Change> apart = uneven_changes(changes_of(iterations));
  if (apart.empty()) return;
  const auto [first, last] = std::ranges::minmax(apart.front(), apart.back(), {}, &Change::line);
  log.uneven = UnevenScales{.lines = {first.line, last.line}, .first = first.factor, .last = last.factor};
  for (CountedIterations& counted : iterations) {
    IterationLine& line = counted.line;
    line.has_scaler = line.has_scaler || line.scale.has_value();
    line.scale.reset();
    line.scale_before.reset();
  }
}

}  // namespace halfscope
