// Section 3.2 of the paper: choosing the scaling factor, and what too large a one does.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "experiments/ablations/loss_scale_arms.hpp"
#include "experiments/ablations/sgd_classifier.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace scale_sweep {
namespace {

constexpr int first_exponent = -4, last_exponent = 24;

constexpr const char* paper_statement =
    "Section 3.2: there is no downside to a large scaling factor as long as it does not overflow; an "
    "overflow "
    "makes infinities and NaNs in the weight gradients that damage the weights irreversibly, unless the "
    "update "
    "is skipped. The networks of the paper trained with constant factors from 8 to 32K.";

std::string name_at(int exponent) {
  return static_scale_arm(std::ldexp(1.0, exponent)).name;
}

/// Exponents of the constant scales that were run, ascending.
std::vector<int> exponents_run(const ExperimentSummary& summary) {
  std::vector<int> exponents;
  for (int exponent = first_exponent; exponent <= last_exponent; ++exponent)
    if (summary.find(name_at(exponent)) != nullptr) exponents.push_back(exponent);
  return exponents;
}

/// The scales at which no seed diverged, as the longest run of neighbours among those run, in words.
std::string usable_scales(const ExperimentSummary& summary) {
  const std::vector<int> exponents = exponents_run(summary);
  std::span<const int> longest, usable;
  for (std::size_t i = 0; i < exponents.size(); ++i) {
    const bool trains = summary.find(name_at(exponents[i]))->diverged == 0;
    usable =
        trains ? std::span(exponents).subspan(i - usable.size(), usable.size() + 1) : std::span<const int>();
    if (usable.size() > longest.size()) longest = usable;
  }
  if (longest.empty()) return "No constant scale that was run trains in every seed";
  const bool has_gaps = longest.back() - longest.front() >= static_cast<int>(longest.size());
  return fmt::format("Every constant scale {}from 2^{} to 2^{} trains in every seed",
                     has_gaps ? "that was run " : "", longest.front(), longest.back());
}

/// From 8 to 32K, the factors that the paper's networks were trained with.
constexpr std::array factors_of_the_paper{3, 7, 11, 15};

/// The classifier's seeds differ by a point.
std::vector<Expectation> expectations() {
  constexpr double close = 2;
  std::vector<Expectation> all;
  for (const int exponent : factors_of_the_paper)
    all.push_back({name_at(exponent), "fp32", Expected::as_good, close});
  all.push_back({name_at(18), "fp32", Expected::worse, close});
  all.push_back({"fp16_dynamic", "fp32", Expected::as_good, close});
  return all;
}

std::string verdict(const ExperimentSummary& summary) {
  std::string text = usable_scales(summary);
  const ArmSummary* large = summary.find(name_at(18));
  if (large != nullptr) text += ". A constant 2^18: " + against_baseline(summary, large->arm, "fp32");
  if (const ArmSummary* skips = summary.find("fp16_s262144_skip"); skips != nullptr && skips->skipped) {
    text += fmt::format(". 2^18, with overflowing steps skipped but the scale kept: {}, {:.0f} steps skipped",
                        against_baseline(summary, skips->arm, "fp32"), *skips->skipped);
  }
  if (const ArmSummary* dynamic = summary.find("fp16_dynamic"); dynamic != nullptr && dynamic->skipped) {
    text += fmt::format(". Dynamic scaling from 2^24 recovers after {:.0f} skipped steps: {}",
                        *dynamic->skipped, against_baseline(summary, dynamic->arm, "fp32"));
  }
  return text + ".";
}

/// The paper's factors, two smaller ones, and two that overflow.
std::vector<std::string> quick_arms() {
  std::vector<std::string> names{"fp32", name_at(-4), name_at(0)};
  for (const int exponent : factors_of_the_paper) names.push_back(name_at(exponent));
  names.insert(names.end(), {name_at(16), name_at(18)});
  names.insert(names.end(), {"fp16_dynamic", "fp16_s262144_skip"});
  return names;
}

Arm skipping_arm() {
  return {"fp16_s262144_skip",
          "loss scale 2^18, steps that overflow are skipped, the scale never moves",
          {{"policy", "fp16_mixed"},
           {"loss_scale", "dynamic"},
           {"initial_scale", "262144"},
           {"backoff_factor", "1"},
           {"growth_interval", "1000000"}}};
}

}  // namespace
}  // namespace scale_sweep

Experiment make_scale_sweep() {
  using namespace scale_sweep;
  std::vector<Arm> arms{fp32_arm()};
  for (int exponent = first_exponent; exponent <= last_exponent; ++exponent) {
    arms.push_back(static_scale_arm(std::ldexp(1.0, exponent)));
  }
  arms.push_back(dynamic_scale_arm());
  arms.push_back(skipping_arm());
  return {
      .name = "scale-sweep",
      .summary = "constant loss scales from 2^-4 to 2^24 beside dynamic scaling, on a classifier",
      .paper = paper_statement,
      .claim = {"Every factor does, from 8 to 32K, until gradients overflow; then steps have to be skipped.",
                expectations()},
      .settings = with(sgd_classifier_settings(), {{"steps", "100"}, {"observe_every", "5"}}),
      .full_settings = {{"model", "resnet18"}, {"batch", "256"}},
      .varied = {"loss_scale"},
      .arms = std::move(arms),
      .quick_arms = quick_arms(),
      .full_arms = {"fp32", "fp16_s1", "fp16_s1024", "fp16_s262144", "fp16_dynamic"},
      .verdict = verdict};
}

}  // namespace halfscope
