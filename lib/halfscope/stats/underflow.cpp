// Underflow counters: from the histogram where the cast is to FP16, else by comparing before and after.
#include <halfscope/stats/underflow.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/format/bits.hpp>
#include <halfscope/format/catalogue.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace {

void count_from_histogram(const ExponentHistogram& before, TensorCounters& counters) {
  const WhatIf cast = what_if(before, 0);  // the values carry their scale already
  counters.flushed = cast.flushed;
  counters.subnormal = cast.subnormal;
  counters.overflow = cast.overflow;
}

void count_by_comparison(const CastEvent& event, TensorCounters& counters) {
  if (event.before.size() != event.after.size()) {
    throw RequestError("gradient_underflow: " + std::string(event.site.tensor) + " has " +
                       std::to_string(event.before.size()) + " values before the cast and " +
                       std::to_string(event.after.size()) + " after it");
  }
  const std::uint32_t min_normal = static_cast<std::uint32_t>(event.quantizer.format.min_exponent() + 127)
                                   << 23;
  for (std::size_t i = 0; i < event.before.size(); ++i) {
    const std::uint32_t before = magnitude_bits(event.before[i]);
    const std::uint32_t after = magnitude_bits(event.after[i]);
    counters.flushed += before != 0 && after == 0 ? 1 : 0;
    counters.subnormal += after != 0 && after < min_normal ? 1 : 0;
    counters.overflow += before < infinity_bits && after >= infinity_bits ? 1 : 0;
  }
}

/// Integers and a maximum: the same whatever the order of the parts.
void merge(TensorCounters& all, const TensorCounters& part) {
  all.elements += part.elements;
  all.zeros += part.zeros;
  all.flushed += part.flushed;
  all.subnormal += part.subnormal;
  all.overflow += part.overflow;
  all.nonfinite += part.nonfinite;
  all.max_abs = std::max(all.max_abs, part.max_abs);
}

/// What the step's records say of the other parts of the event's tensor; null where there is nothing yet.
TensorCounters* other_parts(const Site& site, std::vector<TensorCounters>& tensors) {
  if (site.part == whole_tensor) return nullptr;
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TensorCounters& counters) {
    return counters.tensor == site.tensor && counters.role == site.role;
  });
  return found == tensors.end() ? nullptr : &*found;
}

HistogramRecord* other_parts(const Site& site, std::vector<HistogramRecord>& histograms) {
  if (site.part == whole_tensor) return nullptr;
  const auto found = std::find_if(histograms.begin(), histograms.end(), [&](const HistogramRecord& record) {
    return record.tensor == site.tensor && record.what == name_of(site.role);
  });
  return found == histograms.end() ? nullptr : &*found;
}

class GradientUnderflow final : public Tracker {
 public:
  void on_cast(const CastEvent& event, StepObservations& step) override {
    const Site& site = event.site;
    if (site.role != Role::activation_gradient && site.role != Role::weight_gradient) return;
    ExponentHistogram histogram;
    histogram.add(event.before);
    const TensorCounters counters = count_underflow(event, histogram);
    if (TensorCounters* seen = other_parts(site, step.tensors)) {
      merge(*seen, counters);
    } else {
      step.tensors.push_back(counters);
    }
    if (HistogramRecord* seen = other_parts(site, step.histograms)) {
      seen->histogram.merge(histogram);
    } else {
      step.histograms.push_back({.tensor = std::string(site.tensor),
                                 .what = std::string(name_of(site.role)),
                                 .scale = site.scale,
                                 .histogram = histogram});
    }
  }
};

}  // namespace

TensorCounters count_underflow(const CastEvent& event, const ExponentHistogram& before) {
  TensorCounters counters{.tensor = std::string(event.site.tensor),
                          .role = event.site.role,
                          .scale = event.site.scale,
                          .elements = before.elements(),
                          .zeros = before.zeros(),
                          .nonfinite = before.infinities() + before.nans(),
                          .max_abs = before.max_abs()};
  const bool as_fp16 = event.quantizer == Quantizer{fp16} || event.quantizer.is_identity();
  as_fp16 ? count_from_histogram(before, counters) : count_by_comparison(event, counters);
  return counters;
}

std::unique_ptr<Tracker> make_gradient_underflow() {
  return std::make_unique<GradientUnderflow>();
}

}  // namespace halfscope
