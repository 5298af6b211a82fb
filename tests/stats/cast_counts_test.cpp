// Counted rounding: the bits of plain rounding, and counts that equal a look at every element.
#include <halfscope/stats/cast_counts.hpp>

#include <cmath>

#include <halfscope/core/isa.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/cast/round.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::cast_counts_test {
namespace {

/// Element by element, in double; `counted_as` is the format whose limits count.
CastCounters look_at(std::span<const float> before, std::span<const float> after,
                     const FloatFormat& counted_as) {
  CastCounters expected;
  const double min_normal = std::ldexp(1.0, counted_as.min_exponent());
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double exact = std::abs(double{before[i]}), rounded = std::abs(double{after[i]});
    expected.zeros += exact == 0 ? 1 : 0;
    expected.nonfinite += std::isfinite(exact) ? 0 : 1;
    expected.flushed += exact > 0 && rounded == 0 ? 1 : 0;
    expected.subnormal += rounded > 0 && rounded < min_normal ? 1 : 0;
    expected.overflow += std::isfinite(exact) && !std::isfinite(rounded) ? 1 : 0;
    if (std::isfinite(exact)) expected.max_abs = std::max(expected.max_abs, std::abs(before[i]));
  }
  return expected;
}

std::vector<float> hard_values() {
  std::vector<float> values = boundary_floats(fp16);
  const std::vector<float> random = random_floats(70'000);
  values.insert(values.end(), random.begin(), random.end());
  return values;
}

TEST_CASE("counted rounding rounds as round does and counts every element", "[tracker][cast]") {
  const std::vector<float> before = hard_values();
  const RandomStream stream{.seed = 7, .step = 3, .site = 5};
  for (const char* name : {"fp16", "fp16/toward_zero", "fp16/nearest_away", "fp16/up", "fp16/down",
                           "fp16/to_odd", "fp16/stochastic", "fp16/saturate", "bf16", "fp8_e4m3", "fp8_e5m2",
                           "e6m9", "fp32", "fp32/stochastic"}) {
    INFO(name);
    const Quantizer q = parse_quantizer(name);
    std::vector<float> expected(before.size()), as_counted(before.size());
    round(before, expected, q, stream);
    const Quantizer counted = q.is_identity() ? Quantizer{fp16} : q;
    round(before, as_counted, counted, stream);
    const CastCounters counters = look_at(before, as_counted, counted.format);
    ExponentHistogram histogram;
    histogram.add(before);
    for (const int run : {0, 1, 2, 3, 4, 5}) {
      const CastDetail detail = run < 3 ? CastDetail::counters : CastDetail::histogram;
      std::vector<float> values = before;
      const CastCounts found =
          with_threads(1 + run % 3, [&] { return round_and_count(values, q, detail, stream); });
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!(values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i])))) FAIL(i);
      }
      CHECK(found.elements == static_cast<std::int64_t>(before.size()));
      CHECK(found.counters == counters);
      CHECK(found.before.has_value() == (detail == CastDetail::histogram));
      if (found.before) CHECK(*found.before == histogram);
    }
  }
}

TEST_CASE("every instruction set column_counters alike", "[tracker][cast][kernel]") {
  const std::vector<float> before = hard_values();
  for (const char* name : {"fp16", "fp8_e4m3", "fp16/saturate"}) {
    const Quantizer q = parse_quantizer(name);
    std::vector<float> after(before.size());
    round(before, after, q);
    for (const Isa isa : available_isas()) {
      const ForcedIsa forced(isa);
      for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{31}, before.size()}) {
        INFO(name << " " << name_of(isa) << " " << size);
        std::vector<float> values(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(size));
        const CastCounters counters = round_and_count(values, q, CastDetail::counters).counters;
        CHECK(counters == look_at(std::span(before).first(size), std::span(after).first(size), q.format));
      }
    }
  }
}

TEST_CASE("counted rounding of nothing and of little", "[tracker][cast]") {
  CHECK(round_and_count({}, {fp16}, CastDetail::histogram).elements == 0);
  for (const std::size_t size : {std::size_t{1}, std::size_t{31}}) {
    std::vector<float> values(size, 0x1p-26f);
    const CastCounts counts = round_and_count(values, {fp16}, CastDetail::counters);
    CHECK(counts.elements == static_cast<std::int64_t>(size));
    CHECK(counts.counters.flushed == static_cast<std::int64_t>(size));
    CHECK(values == std::vector<float>(size, 0.0f));
  }
}

}  // namespace
}  // namespace halfscope::cast_counts_test
