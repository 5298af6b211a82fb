// Underflow counters: from the histogram where the cast is to FP16, else by comparing before and after.
#include <halfscope/stats/underflow.hpp>

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

class GradientUnderflow final : public Tracker {
 public:
  void on_cast(const CastEvent& event, StepObservations& step) override {
    const Role role = event.site.role;
    if (role != Role::activation_gradient && role != Role::weight_gradient) return;
    ExponentHistogram histogram;
    histogram.add(event.before);
    step.tensors.push_back(count_underflow(event, histogram));
    step.histograms.push_back({.tensor = std::string(event.site.tensor),
                               .what = std::string(name_of(role)),
                               .scale = event.site.scale,
                               .histogram = histogram});
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
