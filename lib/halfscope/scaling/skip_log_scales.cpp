// Scales that no scaler of constant factors has: their falls tell of no skipped steps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <halfscope/scaling/detail/skip_log_reader.hpp>

namespace halfscope {
namespace {

constexpr double least_compared = 16;       // below it decimals that are left out count
constexpr double printed_rounding = 0.005;  // error of a logarithm, for a printed scale
constexpr std::int64_t quick_steps = 2;     // steps; scalers grow after ten good ones at least
constexpr double least_factor = 0.05;       // no scaler lowers its scale by less than a thirtieth

/// A change of the scale from one line to the next, as a logarithm without its sign.
struct Change {
  double log2 = 0;
  std::int64_t line = 0;  ///< the later one
  double scale = 1;       ///< behind it
  double factor = 1;
  bool is_of_window = false;  ///< the line stands for several steps
};

struct Changes {
  std::vector<Change> falls, rises;
  std::vector<Change> single_rises;  ///< between successive steps
  std::vector<Change> quick_rises;   ///< within two steps of the change before
  bool are_halvings = true;          ///< or doublings, and several of them
};

/// Changes whose factors are those of no scaler, or may be those of a mean.
struct Apart {
  std::vector<Change> changes{};  ///< empty where there are none
  UnevenScales::Kind kind = UnevenScales::Kind::different_factors;
};

Changes changes_of(const std::vector<CountedIterations>& iterations) {
  Changes found;
  const IterationLine* before = nullptr;
  std::int64_t last_change = std::numeric_limits<std::int64_t>::min() / 2;
  for (const CountedIterations& counted : iterations) {
    const IterationLine& line = counted.line;
    if (!line.scale || *line.scale < least_compared || counted.gap != LogGap::none) before = nullptr;
    if (!line.scale || *line.scale < least_compared) continue;
    if (before != nullptr) {
      const double log2 = std::log2(*line.scale / *before->scale);
      const Change change{std::abs(log2), line.line, *line.scale, *line.scale / *before->scale,
                          !line.is_numbered || line.iteration > before->iteration + 1};
      found.are_halvings = found.are_halvings && std::abs(log2 - std::round(log2)) < printed_rounding;
      if (log2 < -printed_rounding / 4) found.falls.push_back(change);
      if (log2 > printed_rounding) found.rises.push_back(change);
      if (log2 > printed_rounding && line.iteration == before->iteration + 1)
        found.single_rises.push_back(change);
      if (log2 > printed_rounding && line.iteration - last_change <= quick_steps)
        found.quick_rises.push_back(change);
      if (std::abs(log2) > printed_rounding / 4) last_change = line.iteration;
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

/// Falls of one factor that a mean over a window has as well as a scaler: a single one, one of almost
/// nothing, or one that each rise takes back, as where the scale falls in the window in which it has grown.
bool may_be_means(const Changes& changes, std::span<const Change> falls, std::span<const Change> rises) {
  if (falls.size() != 1 || !changes.falls.front().is_of_window) return false;
  const bool takes_back = rises.size() == 1 && std::abs(rises[0].log2 - falls[0].log2) < 4 * printed_rounding;
  return changes.falls.size() == 1 || falls[0].log2 < least_factor || takes_back;
}

Apart uneven_changes(const Changes& changes) {
  constexpr std::size_t most_rises = 2;  // a growth, and one up to a largest scale
  if (changes.falls.empty()) return {};
  const auto scales_of = [](const std::vector<Change>& some) {
    return std::ranges::minmax(some, {}, &Change::scale);
  };
  const std::vector<Change> falls = kinds_of(changes.falls), rises = kinds_of(changes.rises);
  if (!changes.are_halvings) {
    const bool is_small = falls.size() > 1 && falls.front().log2 < least_factor;
    if (is_small || !have_common_factor(changes.falls, scales_of(changes.falls).min.scale)) return {falls};
    const bool grows_slowly = !rises.empty() && rises.front().log2 < least_factor;
    if (!rises.empty() && !grows_slowly &&
        !have_common_factor(changes.rises, scales_of(changes.rises).max.scale))
      return {rises};
    if (may_be_means(changes, falls, rises)) return {falls, UnevenScales::Kind::one_factor};
  }
  const std::vector<Change> single = kinds_of(changes.single_rises);
  if (single.size() > most_rises) return {single};
  constexpr std::size_t least_quick = 3;
  if (changes.quick_rises.size() < least_quick) return {};
  return {{changes.quick_rises.front(), changes.quick_rises.back()}, UnevenScales::Kind::quick_rises};
}

}  // namespace

void leave_uneven_scales(std::vector<CountedIterations>& iterations, SkipLog& log) {
  const auto [apart, kind] = uneven_changes(changes_of(iterations));
  if (apart.empty()) return;
  const auto [first, last] = std::ranges::minmax(apart.front(), apart.back(), {}, &Change::line);
  log.uneven = UnevenScales{
      .kind = kind, .lines = {first.line, last.line}, .first = first.factor, .last = last.factor};
  for (CountedIterations& counted : iterations) {
    IterationLine& line = counted.line;
    line.has_scaler = line.has_scaler || line.scale.has_value();
    line.scale.reset();
    line.scale_before.reset();
  }
}

}  // namespace halfscope
