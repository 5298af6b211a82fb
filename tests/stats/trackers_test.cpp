// Trackers, with answers worked out by hand.
#include <halfscope/stats/lost_updates.hpp>
#include <halfscope/stats/trackers.hpp>

#include <cmath>

#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/format/round.hpp>

#include "tests/reference/rounding.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::trackers_test {
namespace {

/// Observations by `tracker` of the cast of `before`.
StepObservations observe_cast(Tracker& tracker, Role role, const Quantizer& q,
                              std::span<const float> before) {
  std::vector<float> values(before.begin(), before.end());
  StepObservations step;
  const CastDetail detail = tracker.watches_casts(role);
  if (detail == CastDetail::none) return step;
  const CastCounts counts = round_and_count(values, q, detail);
  tracker.on_cast({{.step = 3, .tensor = "fc1", .role = role, .scale = 8}, q, counts, values}, step);
  return step;
}

// Zeros, flushed (a tie among them), subnormal (one rounding up from below 2^-24), normal, overflowing,
// non-finite.
const std::vector<float> gradients{0.0f,       -0.0f,     0x1p-25f, -0x1p-26f,    1e-30f,
                                   0x1.8p-25f, -0x1p-20f, 0x1p-14f, 0x1.ffcp-15f, 1.0f,
                                   65519.0f,   65520,     -1e9f,    INFINITY,     NAN};

TEST_CASE("every tracker of the table can be made and ignores what is not its business", "[tracker]") {
  for (const TrackerEntry& entry : tracker_table) {
    INFO(entry.name);
    CHECK_FALSE(entry.summary.empty());
    CHECK(&find_in_table("tracker", entry.name, tracker_table) == &entry);
    const StepObservations step = observe_cast(*entry.make({}), Role::activation, {fp16}, gradients);
    CHECK((step.tensors.empty() && step.updates.empty() && step.reductions.empty()));
    CHECK((step.histograms.empty() && step.operands.empty()));
    // And does not ignore what is.
    const bool watches_casts = entry.make({})->watches_casts(Role::weight_gradient) != CastDetail::none;
    const bool watches_sums = entry.make({})->watches_updates() || entry.make({})->watches_reductions();
    CHECK((watches_casts || watches_sums || entry.make({})->watches_operands()));
  }
}

TEST_CASE("cast_statistics counts what an FP16 cast does", "[tracker]") {
  const auto tracker = make_cast_statistics();
  for (const Role role : {Role::activation_gradient, Role::weight_gradient}) {
    for (const char* name : {"fp16", "fp32", "fp16/nearest_away"}) {  // nearest_away differs in the tie alone
      INFO(name);
      const StepObservations step = observe_cast(*tracker, role, parse_quantizer(name), gradients);
      const bool away = std::string_view(name) == "fp16/nearest_away";
      REQUIRE(step.tensors.size() == 1);
      const TensorCounters& counters = step.tensors[0];
      CHECK(counters.tensor == "fc1");
      CHECK(counters.role == role);
      CHECK(counters.scale == 8);
      CHECK(counters.elements == 15);
      CHECK(counters.counters.zeros == 2);
      CHECK(counters.counters.flushed == (away ? 2 : 3));
      CHECK(counters.counters.subnormal == (away ? 3 : 2));
      CHECK(counters.counters.overflow == 2);
      CHECK(counters.counters.nonfinite == 2);
      CHECK(counters.counters.max_abs == 1e9f);
      REQUIRE(step.histograms.size() == 1);
      CHECK(step.histograms[0].what == name_of(role));
      CHECK(step.histograms[0].scale == 8);
      CHECK(step.histograms[0].histogram.elements() == 15);
    }
  }
}

TEST_CASE("cast_statistics counts the roles that it is told to", "[tracker]") {
  const auto tracker = make_cast_statistics({.roles = {Role::activation}});
  const StepObservations activations = observe_cast(*tracker, Role::activation, {fp16}, gradients);
  CHECK(activations.tensors.at(0).role == Role::activation);
  CHECK(activations.tensors.at(0).counters.flushed == 3);
  CHECK(activations.histograms.empty());
  CHECK(observe_cast(*tracker, Role::weight_gradient, {fp16}, gradients).tensors.empty());
}

TEST_CASE("cast_statistics counts other formats by their own limits", "[tracker]") {
  const auto tracker = make_cast_statistics();
  const std::vector<float> values{0x1p-11f, 0x1p-10f, 0x1.8p-10f, 0x1p-9f, 0x1p-6f, 448,
                                  464,      465,      -1e9f,      NAN,     0};
  const TensorCounters e4m3 = observe_cast(*tracker, Role::weight_gradient, {fp8_e4m3}, values).tensors[0];
  CHECK(e4m3.counters.flushed == 2);  // 2^-10 is the tie
  CHECK(e4m3.counters.subnormal == 2);
  CHECK(e4m3.counters.overflow == 2);  // to NaN: the format has no infinity
  CHECK(e4m3.counters.nonfinite == 1);
  const Quantizer saturating{fp8_e4m3, Rounding::nearest_even, Overflow::saturate};
  CHECK(observe_cast(*tracker, Role::weight_gradient, saturating, values).tensors[0].counters.overflow == 0);
  const TensorCounters bfloat = observe_cast(*tracker, Role::weight_gradient, {bf16}, gradients).tensors[0];
  CHECK((bfloat.counters.flushed == 0 && bfloat.counters.subnormal == 0 && bfloat.counters.overflow == 0));
}

TEST_CASE("lost_updates finds the updates that FP16 weights do not feel", "[tracker]") {
  // Above 1 the spacing is 2^-10, below it 2^-11; ties go to the even 1.
  const std::vector<float> weights{1, 1, 1, 1, 1, 1, 1, 0, 0, 1.0009765625f, 2048};
  const std::vector<float> updates{0,        0x1p-11f, 0x1.000002p-11f, -0x1p-12f, -0x1.000002p-12f,
                                   0x1p-20f, 0x1p-10f, 0x1p-25f,        0x1p-24f,  0x1p-11f,
                                   1};
  const auto tracker = make_lost_updates();
  StepObservations step;
  const Site site{.tensor = "w"};
  const CountedUpdate counted{std::ssize(weights),
                              update_effect(weights, updates, weight_storage(site, {fp16})),
                              update_ratios(weights, updates)};
  tracker->on_update({site, {fp16}, counted}, step);
  REQUIRE(step.updates.size() == 1);
  const UpdateCounters& counters = step.updates[0];
  CHECK(counters.tensor == "w");
  CHECK(counters.elements == 11);
  CHECK(counters.nonzero == 10);
  CHECK(counters.lost ==
        5);  // 2^-11, -2^-12, 2^-20, 2^-25 onto 0, 1 onto 2048; the odd weight's tie rounds away
  double intended = 0;
  for (const float dw : updates) intended += std::abs(double{dw});
  const double applied = 0x1p-10 + 0x1p-11 + 0x1p-10 + 0x1p-24 + 0x1p-10;
  CHECK(counters.applied_over_intended == Approx(applied / intended));
  REQUIRE(step.histograms.size() == 1);
  CHECK(step.histograms[0].what == "update_ratio");
  CHECK(step.histograms[0].tensor == "w");
  const ExponentHistogram& ratios = step.histograms[0].histogram;
  CHECK(ratios.elements() == 8);
  CHECK(ratios.count(-11) == 3);  // 2^-11, just above it, 1/2048
  CHECK(ratios.count(-12) == 3);  // -2^-12, just beyond it, 2^-11 of the weight above 1
  CHECK(ratios.count(-20) == 1);
  CHECK(ratios.count(-10) == 1);
}

TEST_CASE("lost_updates rounds a master copy first, and the exact sum once", "[tracker]") {
  // The master copy 1 + 2^-12 is stored as 1; 1 + 2^-11 + 2^-35 is above the tie, but its FP32 sum is the
  // tie.
  const std::vector<float> weights{1.0f + 0x1p-12f, 1.0f, 1.0f, -1.0f};
  const std::vector<float> updates{0x1.8p-12f, 0x1.000002p-11f, 0x1.fffffep-12f, -0x1.000002p-11f};
  CHECK(1.0f + updates[1] == 1.0f + 0x1p-11f);
  const UpdateCounters counters = count_lost_updates({.tensor = "w"}, {fp16}, weights, updates);
  CHECK(counters.lost == 2);
  CHECK(counters.nonzero == 4);
}

TEST_CASE("lost_updates agrees with exact sums, rounded once", "[tracker]") {
  const std::size_t size = 257 * 259;
  const RandomStream stream{.seed = 11};
  for (const char* name : {"fp16", "bf16", "fp8_e5m2", "fp32", "fp16/toward_zero", "fp16/nearest_away"}) {
    const Quantizer q = parse_quantizer(name);
    std::vector<float> weights(size), updates(size);
    std::int64_t lost = 0;
    for (std::size_t i = 0; i < size; ++i) {
      weights[i] = round(std::ldexp(stream.uniform(2 * i) - 0.5f, static_cast<int>(i % 17) - 12), {fp16});
      const float ratio = std::ldexp(stream.uniform(2 * i + 1) - 0.5f, -static_cast<int>(i % 29));
      updates[i] = weights[i] * ratio;
      if (i % 5 == 0) updates[i] = std::ldexp(weights[i], -12 + static_cast<int>(i % 3));  // ties among them
      const double stored = reference::round(double{weights[i]}, q);
      const double sum = stored + double{updates[i]};  // exact: the exponents are at most 29 apart
      if (updates[i] != 0 && reference::round(sum, q) == stored) ++lost;
    }
    INFO(name);
    CHECK(count_lost_updates({.tensor = "w"}, q, weights, updates).lost == lost);
    CHECK((lost > 0 || q.is_identity()));
  }
}

TEST_CASE("lost_updates of empty, unchanged and overflowing weights", "[tracker]") {
  const UpdateCounters none = count_lost_updates({.tensor = "w"}, {fp16}, {}, {});
  CHECK((none.elements == 0 && none.lost == 0 && none.applied_over_intended == 1));
  const std::vector<float> weights{1, 65504};
  const std::vector<float> still{0, 0};
  CHECK(count_lost_updates({.tensor = "w"}, {fp16}, weights, still).applied_over_intended == 1);
  const std::vector<float> huge{1, 65504};
  CHECK(count_lost_updates({.tensor = "w"}, {fp16}, weights, huge).applied_over_intended == 1);
  CHECK(count_lost_updates({.tensor = "w"}, {fp16}, weights, huge).lost == 0);
  check_says(message_of<InvalidArgument>([&] {
               (void)count_lost_updates({.tensor = "fc1.weight"}, {fp16}, weights, std::span(huge).first(1));
             }),
             {"fc1.weight", "2", "1"});
}

TEST_CASE("stochastic rounding loses updates in proportion, the same ones every time", "[tracker]") {
  const std::vector<float> weights(100'000, 1.0f);
  const std::vector<float> updates(weights.size(), 0x1p-13f);  // an eighth of the spacing
  const auto count = [&] {
    return count_lost_updates({.step = 5, .tensor = "w"}, {fp16, Rounding::stochastic}, weights, updates);
  };
  const UpdateCounters counters = count();
  CHECK(counters.lost == Approx(87'500).margin(500));
  CHECK(counters.applied_over_intended == Approx(1).margin(0.05));
  CHECK(count().lost == counters.lost);
}

TEST_CASE("reduction_overflow keeps what reductions report", "[tracker]") {
  const auto tracker = make_reduction_overflow();
  StepObservations step;
  const ReductionCounters counters{
      .reductions = 2, .terms = 70'000, .overflowed = 1, .first_overflow = 65'535};
  tracker->on_reduction({{.tensor = "bn1"}, counters}, step);
  REQUIRE(step.reductions.size() == 1);
  CHECK(step.reductions[0].tensor == "bn1");
  CHECK(step.reductions[0].counters == counters);
}

TEST_CASE("reduction counters merge", "[tracker]") {
  const ReductionCounters quiet{.reductions = 1, .terms = 100, .stagnated = 3, .largest_partial_sum = 9};
  const ReductionCounters early{.reductions = 2, .terms = 100, .overflowed = 1, .first_overflow = 4};
  const ReductionCounters late{.reductions = 1, .terms = 100, .overflowed = 1, .first_overflow = 40};
  ReductionCounters merged;
  merged.merge(quiet);
  CHECK(merged == quiet);
  merged.merge(late);
  CHECK(merged.first_overflow == 40);
  merged.merge(early);
  merged.merge(quiet);
  CHECK(merged == ReductionCounters{5, 100, 2, 4, 6, 9});
}

}  // namespace
}  // namespace halfscope::trackers_test
