// Rescales recorded gradients and hands them to a scaler.
#include <halfscope/scaling/replay.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <halfscope/core/name_list.hpp>
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace {

/// Where FP16 rounds to infinity.
constexpr double limit = 65520;

/// max|g| at scale 1 as far as the trace tells; infinite where no scale helps.
double unscaled_max(const TraceStep& step) {
  if (step.finite) return step.max_abs / step.scale;
  return step.scale <= 1 ? std::numeric_limits<double>::infinity() : limit / step.scale;
}

/// The binades between the recorded scale and `scale`.
int moved_log2(const TraceStep& step, double scale) {
  return std::ilogb(scale / step.scale);
}

}  // namespace

ScalerReplay::ScalerReplay(LossScaler& scaler) : scaler_(&scaler) {
  if (!scaler.layerwise()) return;
  throw InvalidArgument(
      "layerwise cannot be replayed: it chooses its scales inside the backward pass, from the gradient and "
      "the weights of each layer, which a trace does not hold; train with it, --set scaler=layerwise");
}

void ScalerReplay::step(const TraceStep& step) {
  if (stopped_) return;
  if (scaler_->needs() == GradientDetail::histogram && !step.histogram) {
    throw InvalidArgument(
        fmt::format("step {} has no histogram of its weight gradients, which this loss scaler looks at; "
                    "record the run with "
                    "--set record_gradients=histogram",
                    step.step));
  }
  const double scale = scaler_->scale();
  const double max_abs = unscaled_max(step) * scale;
  StepGradients gradients{.finite = max_abs < limit, .max_abs = static_cast<float>(max_abs)};
  if (step.histogram) {
    gradients.histogram = &*step.histogram;
    gradients.histogram_log2 = moved_log2(step, scale);
    count_flushed(step, scale);
  }
  scales_.push_back(scale);
  steps_.push_back(step.step);
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

ScalersToReplay scalers_to_replay(std::vector<std::string> names) {
  if (names.size() != 1 || names[0] != all_names) return {std::move(names), false};
  ScalersToReplay every{.names = {}, .all = true};
  for (const ScalerEntry& entry : scaler_table) {
    if (!make_scaler(entry, {})->layerwise()) every.names.emplace_back(entry.name);
  }
  return every;
}

}  // namespace halfscope
