// Hands the steps of a log to two replays.
#include <halfscope/scaling/skip_log_replay.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/scaling/scalers.hpp>

namespace halfscope {
namespace {

constexpr double largest_fp16 = 65504;
/// Logs print norms with three decimals.
constexpr double norm_rounding = 0.0005;

/// A step that is finite at no scale.
TraceStep at_every_scale(std::int64_t step) {
  return {.step = step, .scale = 1, .finite = false};
}

/// A step whose gradients are as small as the log allows.
TraceStep least_of(const LoggedStep& step, const SkipLog& log) {
  const bool overflows =
      !log.may_be_repeated(step) && (step.skipped || step.lost) && std::isfinite(step.high);
  return {.step = step.step, .scale = overflows ? step.high : step.scale, .finite = !overflows};
}

/// A step whose gradients are as large as the log allows.
TraceStep greatest_of(const LoggedStep& step, const SkipLog& log) {
  if (step.skipped || step.lost || log.may_be_repeated(step)) return at_every_scale(step.step);
  const bool has_bound = log.has_scaler && step.low > 0;
  if (!has_bound && !step.grad_norm) return at_every_scale(step.step);
  const double scale = has_bound ? step.low : step.scale;
  TraceStep greatest{.step = step.step, .scale = scale, .max_abs = largest_fp16};
  if (step.grad_norm) {
    const double norm = (*step.grad_norm + norm_rounding) * scale;
    greatest.max_abs = has_bound ? std::min(largest_fp16, norm) : norm;
  }
  return greatest;
}

/// Scalers from the log's first scale on.
SkipLogReplay replay_from(const std::string& name, double initial_scale) {
  const ScalerEntry& scaler = find_scaler(name);
  const bool has_it = std::ranges::any_of(
      scaler.options, [](const ScalerOption& option) { return option.name == "initial_scale"; });
  return SkipLogReplay({name}, has_it ? ScalerSettings{{"initial_scale", initial_scale}} : ScalerSettings{});
}

bool does_the_same(const TraceReplay& replay, const RecordedRun& run) {
  const auto& [name, scaler, candidate] = replay.candidates().front();
  if (run.next_scale && scaler->scale() != *run.next_scale) return false;
  return candidate.skips() && candidate.scales() == run.scales && candidate.overflows() == run.skips;
}

}  // namespace

SkipLogReplay::SkipLogReplay(const std::vector<std::string>& names, const ScalerSettings& settings,
                             std::string_view option_prefix)
    : least_(names, settings, option_prefix), greatest_(names, settings, option_prefix) {
  least_.restrict_to(GradientDetail::finite);
  greatest_.restrict_to(GradientDetail::finite);
}

void SkipLogReplay::take(const SkipLog& log) {
  std::optional<LoggedStep> before;
  for (const LoggedStep& step : log.steps) {
    // Steps without a line are as the one before them, but for its norm.
    if (before) {
      before->grad_norm.reset();
      least_.hold_until(step.step, {});
      greatest_.hold_until(step.step, step.after_hole ? at_every_scale(0) : greatest_of(*before, log));
    }
    least_.step(least_of(step, log));
    greatest_.step(greatest_of(step, log));
    before = step;
    before->skipped = before->lost = false;
  }
}

std::optional<std::int64_t> SkipLogReplay::first_unsure(std::size_t index) const {
  const auto& few = least_.candidates()[index].replay.overflows();
  const auto& many = greatest_.candidates()[index].replay.overflows();
  const auto [one, other] = std::ranges::mismatch(few, many);
  if (one == few.end() && other == many.end()) return std::nullopt;
  if (one == few.end()) return *other;
  return other == many.end() ? *one : std::min(*one, *other);
}

std::vector<SkipLogOutcome> SkipLogReplay::outcomes() const {
  std::vector<SkipLogOutcome> outcomes;
  for (std::size_t i = 0; i < least_.candidates().size(); ++i) {
    const auto unsure = first_unsure(i);
    outcomes.push_back({&least_.candidates()[i], unsure ? "least" : "any", unsure});
    if (unsure) outcomes.push_back({&greatest_.candidates()[i], "greatest", unsure});
  }
  return outcomes;
}

RecordedRun recorded_run(const SkipLog& log) {
  RecordedRun run;
  run.next_scale = log.next_scale;
  SkipLog inferred = log;  // at the scales that are shown
  for (LoggedStep& step : inferred.steps) step.low = step.high = step.scale;
  for (const LoggedStep& step : log.steps) {
    run.scales.push_back(step.scale);
    if (step.skipped) run.skips.push_back(step.step);
  }
  const auto final = std::ranges::find(run.scales, run.scales.back());
  run.first_at_final_scale = log.steps[static_cast<std::size_t>(final - run.scales.begin())].step;
  if (!log.has_scaler || log.unknown_steps > 0 || log.open_steps + log.again > 0 || !log.counts_steps ||
      log.restart || log.uneven)
    return run;
  const auto has_no_scale = [](const LoggedStep& step) { return step.skipped && !std::isfinite(step.high); };
  if (std::ranges::any_of(log.steps, has_no_scale)) return run;
  run.is_compared = true;
  for (const ScalerEntry& scaler : scaler_table) {
    const auto made = make_scaler(scaler, {});
    if (made->layerwise() || made->needs() != GradientDetail::finite) continue;
    const std::string name(scaler.name);
    try {
      SkipLogReplay replay = replay_from(name, run.scales.front());
      replay.take(inferred);
      if (does_the_same(replay.least(), run)) run.reproduced_by.push_back(name);
    } catch (const InvalidArgument&) {
      continue;  // the scaler does not take that scale
    }
  }
  return run;
}

}  // namespace halfscope
