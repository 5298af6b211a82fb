// Moved weights and large histograms are counted in threads: as in one, and as by the functions for either.
#include <halfscope/stats/weight_delta.hpp>

#include <halfscope/stats/lost_updates.hpp>

#include "tests/support/device_parity.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::weight_delta_test {
namespace {

struct Step {
  std::vector<float> before, after, update;
};

/// Updates that are lost, that are not, that are zero, and floats of any kind.
Step step_of(std::size_t size) {
  Step step{uniform_floats(size, -1, 1, 1), uniform_floats(size, -1e-3F, 1e-3F, 2), {}};
  const std::vector<float> any = mixed_floats(size);
  for (std::size_t i = 0; i < size; ++i) {
    step.after[i] = i % 5 == 0 ? step.before[i] : i % 7 == 0 ? any[i] : step.before[i] + step.after[i];
    step.update.push_back(step.after[i] - step.before[i]);
  }
  return step;
}

TEST_CASE("moved weights are counted as updates are", "[stats]") {
  for (const int threads : {1, 3}) {
    const Threads in_use(threads);
    for (const std::size_t size : std::array<std::size_t, 6>{0, 1, 31, 1024, 32769, 257 * 2590}) {
      INFO(size << " weights, " << threads << " threads");
      const Step step = step_of(size);
      const WeightDelta found = count_weight_delta(step.before, step.after);
      const UpdateCounters expected = count_lost_updates({}, {fp16}, step.before, step.update);
      CHECK(found.counters.elements == expected.elements);
      CHECK(found.counters.nonzero == expected.nonzero);
      CHECK(found.counters.lost == expected.lost);
      CHECK(found.counters.applied_over_intended == expected.applied_over_intended);
      CHECK(found.ratios == update_ratios(step.before, step.update));
    }
  }
  const Step step = step_of(257 * 2590);
  for (const FloatFormat& format : {bf16, fp8_e4m3, fp8_e5m2}) {
    const WeightDelta found = count_weight_delta(step.before, step.after, format);
    const UpdateCounters expected = count_lost_updates({}, {format}, step.before, step.update);
    CHECK(found.counters.lost == expected.lost);
    CHECK(found.counters.lost != count_lost_updates({}, {fp16}, step.before, step.update).lost);
    CHECK(found.counters.applied_over_intended == expected.applied_over_intended);
    CHECK(found.ratios == update_ratios(step.before, step.update, format));
    CHECK(found.ratios.format() == format);
  }
  CHECK_THROWS_AS(count_weight_delta(std::vector<float>(2), std::vector<float>(3)), InvalidArgument);
}

TEST_CASE("threads change no count of updates", "[stats]") {
  const Step step = step_of(257 * 2590);
  const UpdateCounters one = count_lost_updates({}, {fp16}, step.before, step.update);
  const ExponentHistogram ratios = update_ratios(step.before, step.update);
  const Threads in_use(3);
  const UpdateCounters several = count_lost_updates({}, {fp16}, step.before, step.update);
  CHECK(several.lost == one.lost);
  CHECK(several.applied_over_intended == one.applied_over_intended);
  CHECK(update_ratios(step.before, step.update) == ratios);
}

TEST_CASE("histograms are added to in threads", "[stats]") {
  for (const std::size_t size : std::array<std::size_t, 4>{0, 31, 1 << 17, 257 * 2590}) {
    const std::vector<float> values = mixed_floats(size);
    ExponentHistogram one(bf16), several(bf16);
    one.add(values);
    const Threads in_use(3);
    add_in_threads(several, values);
    CHECK(several == one);
  }
}

}  // namespace
}  // namespace halfscope::weight_delta_test
