// Rescales recorded gradients and hands them to scalers.
#include <halfscope/scaling/replay.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <halfscope/core/name_list.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace {

/// Where FP16 rounds to infinity.
constexpr double limit = overflow_limit(fp16);

/// max|g| at scale 1 as far as the trace tells; infinite where no scale helps.
double unscaled_max(const TraceStep& step) {
  if (step.finite) return step.max_abs / step.scale;
  return step.scale <= 1 ? std::numeric_limits<double>::infinity() : limit / step.scale;
}

/// The binades between the recorded scale and `scale`.
int moved_log2(const TraceStep& step, double scale) {
  return std::ilogb(scale / step.scale);
}

std::vector<std::string> replayable_scalers() {
  std::vector<std::string> names;
  for (const ScalerEntry& entry : scaler_table) {
    if (!make_scaler(entry, {})->layerwise()) names.emplace_back(entry.name);
  }
  return names;
}

bool has_option(const ScalerEntry& scaler, std::string_view option) {
  return std::ranges::any_of(scaler.options, [&](const ScalerOption& known) { return known.name == option; });
}

/// The scaler with those of the settings that it has.
ReplayCandidate make_candidate(const std::string& name, const ScalerSettings& settings) {
  ScalerSettings own;
  for (const auto& [option, value] : settings) {
    if (has_option(find_scaler(name), option)) own[option] = value;
  }
  std::unique_ptr<LossScaler> scaler = make_scaler(name, own);
  ScalerReplay replay(*scaler);
  return {name, std::move(scaler), std::move(replay)};
}

}  // namespace

ScalerReplay::ScalerReplay(LossScaler& scaler) : scaler_(&scaler) {
  if (!scaler.layerwise()) return;
  throw InvalidArgument(
      "layerwise cannot be replayed: it chooses its scales inside the backward pass, from the gradient and "
      "the weights of each layer, which a trace does not hold; train with it: halfscope run EXPERIMENT --set "
      "scaler=layerwise");
}

void ScalerReplay::step(const TraceStep& step) {
  if (stopped_) return;
  require_histogram(step);
  const double scale = scaler_->scale();
  scales_.push_back(scale);
  steps_.push_back(step.step);
  if (step.histogram) count_flushed(step, scale);
  advance(step);
}

void ScalerReplay::hold(const TraceStep& step) {
  if (stopped_) return;
  require_histogram(step);
  advance(step);
}

void ScalerReplay::require_histogram(const TraceStep& step) const {
  if (scaler_->needs() != GradientDetail::histogram || step.histogram) return;
  throw InvalidArgument(
      fmt::format("step {} has no histogram of its weight gradients, which this loss scaler looks at; "
                  "record "
                  "it: halfscope run EXPERIMENT --set record_gradients=histogram",
                  step.step));
}

void ScalerReplay::advance(const TraceStep& step) {
  const double scale = scaler_->scale();
  const double max_abs = unscaled_max(step) * scale;
  StepGradients gradients{.finite = max_abs < limit, .max_abs = static_cast<float>(max_abs)};
  if (step.histogram) {
    gradients.histogram = &*step.histogram;
    gradients.histogram_log2 = moved_log2(step, scale);
  }
  if (!gradients.finite) overflows_.push_back(step.step);
  try {
    (void)scaler_->update(gradients);
  } catch (const RuntimeFailure& error) {
    stopped_ = fmt::format("step {}: {}", step.step, error.what());
  }
}

void ScalerReplay::count_flushed(const TraceStep& step, double scale) {
  const WhatIf cast = what_if(*step.histogram, moved_log2(step, scale));
  if (cast.nonzero == 0) return;
  flushed_sum_ += cast.flushed_fraction();
  ++flushed_steps_;
}

std::int64_t ScalerReplay::first_at_final_scale() const {
  if (scales_.empty()) return 0;
  const auto first = std::find(scales_.begin(), scales_.end(), scales_.back());
  return steps_[static_cast<std::size_t>(first - scales_.begin())];
}

std::optional<double> ScalerReplay::flushed() const {
  if (flushed_steps_ == 0) return std::nullopt;
  return flushed_sum_ / static_cast<double>(flushed_steps_);
}

TraceReplay::TraceReplay(std::vector<std::string> names, const ScalerSettings& settings,
                         std::string_view option_prefix)
    : named_(names) {
  const auto all = std::ranges::find(names, all_names);
  if (all != names.end()) {
    std::vector<std::string> others = replayable_scalers();
    std::erase_if(others, [&](const std::string& name) { return std::ranges::count(named_, name) > 0; });
    names.insert(names.erase(all), others.begin(), others.end());
  }
  for (const auto& setting : settings) {
    const std::string& option = setting.first;
    const auto has_it = [&](const std::string& name) { return has_option(find_scaler(name), option); };
    if (std::ranges::none_of(names, has_it)) {
      throw InvalidArgument(fmt::format("{}{}: none of the scalers has this option", option_prefix, option));
    }
  }
  check_scaler_options(settings);
  for (const std::string& name : names) candidates_.push_back(make_candidate(name, settings));
}

void TraceReplay::step(const TraceStep& step) {
  if (steps_.empty() && !step.histogram) leave_out(GradientDetail::max_abs);
  if (latest_finite_ && step.step > last_ + 1) hold_until(step.step, *latest_finite_);
  steps_.push_back(step.step);
  last_ = step.step;
  if (!step.finite) ++not_finite_;
  if (step.finite && step.max_abs == 0) ++all_zero_;
  for (ReplayCandidate& candidate : candidates_) candidate.replay.step(step);
  if (step.finite) latest_finite_ = step;
}

void TraceReplay::hold_until(std::int64_t step, TraceStep like) {
  if (steps_.empty() || step <= last_) return;
  if (step - last_ > longest_gap) {
    throw InvalidArgument(fmt::format(
        "step {} follows step {}; give steps of the optimizer, at most {} apart", step, last_, longest_gap));
  }
  for (like.step = last_ + 1; like.step < step; ++like.step) {
    for (ReplayCandidate& candidate : candidates_) candidate.replay.hold(like);
  }
  last_ = step - 1;
}

void TraceReplay::restrict_to(GradientDetail detail) {
  leave_out(detail);
  for (const ReplayCandidate& candidate : candidates_) {
    const GradientDetail needs = candidate.scaler->needs();
    if (needs <= detail) continue;
    throw InvalidArgument(fmt::format(
        "{} looks at the gradients' {}, which a log of skipped steps does not hold; leave it out, or replay "
        "the metrics.jsonl of a run",
        candidate.name, needs == GradientDetail::histogram ? "histogram" : "largest magnitude"));
  }
}

void TraceReplay::leave_out(GradientDetail detail) {
  std::erase_if(candidates_, [&](const ReplayCandidate& candidate) {
    if (candidate.scaler->needs() <= detail || std::ranges::count(named_, candidate.name) > 0) return false;
    left_out_.push_back(candidate.name);
    return true;
  });
}

}  // namespace halfscope
