// A weight update in one pass on the device makes the bits and the counts of the CPU's passes.
#include "lib/nn/apply_update.hpp"

#include <cmath>

#include <halfscope/device/readback.hpp>
#include <halfscope/stats/lost_updates.hpp>

#include "lib/nn/elementwise.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope {
namespace {

constexpr SgdStep sgd{.learning_rate = 0.01f, .momentum = 0.9f};
constexpr AdamStep adam{.learning_rate = 0.001f,
                        .beta1 = 0.9f,
                        .beta2 = 0.999f,
                        .correction1 = 0.271f,
                        .correction2 = 0.002997f,
                        .epsilon = 1e-8f};

/// How an update is made.
struct Making {
  bool with_adam = false;
  bool watched = true;
  float unscale = 1, clip = 1;
  Quantizer state{};
  WeightStorage storage{};
};

/// What is told of an update.
struct Told {
  bool finite = true;
  float largest = 0;  ///< of the new weights, where they are finite
  UpdateEffect effect{};
  ExponentHistogram ratios{};

  friend bool operator==(const Told&, const Told&) = default;
};

Told told(float largest) {
  return {.finite = std::isfinite(largest), .largest = std::isfinite(largest) ? largest : 0};
}

/// Gradient, weights, two moments.
Told in_passes(const Making& making, const Spans& s) {
  std::vector<float> gradient(s[0].begin(), s[0].end()), update(gradient.size());
  for (const float factor : {making.unscale, making.clip}) scale(gradient, factor, gradient);
  if (making.with_adam) {
    adam_update(gradient, adam, making.state, s[2], s[3], update);
  } else {
    sgd_update(gradient, sgd, making.state, s[2], update);
  }
  UpdateEffect effect;
  ExponentHistogram ratios;
  if (making.watched) {
    effect = update_effect(s[1], update, making.storage);
    ratios = update_ratios(s[1], update);
  }
  add(update, s[1]);
  Told all = told(largest_magnitude(s[1]));
  all.effect = effect;
  all.ratios = ratios;
  return all;
}

Told in_one_pass(const Making& making, const Spans& s) {
  Readback readback;
  const auto largest = readback.take<std::uint32_t>(1);
  const auto counters = readback.take<std::int64_t>(cuda::watch_counters);
  const auto sums = readback.take<cuda::UpdateSums>(cuda::watch_tiles(s[1].size()));
  cuda::AppliedUpdate update{.gradient = s[0],
                             .unscale = making.unscale,
                             .clip = making.clip,
                             .weights = s[1],
                             .largest = readback.device_values(largest)};
  if (making.watched) {
    update.watch = {making.storage, readback.device_values(counters), readback.device_values(sums)};
  }
  if (making.with_adam) {
    cuda::apply_adam(update, adam, making.state, s[2], s[3]);
  } else {
    cuda::apply_sgd(update, sgd, making.state, s[2]);
  }
  readback.read();
  Told all = told(from_bits(readback.values(largest)[0]));
  all.effect = cuda::watched_effect(readback.values(counters), readback.values(sums));
  HistogramCounts ratios;
  add_bins_to(ratios, readback.values(counters).first(binned::size), binade_edges(fp16));
  all.ratios = ExponentHistogram(ratios);
  return all;
}

void check(const Making& making, const std::vector<std::vector<float>>& arrays) {
  if (!can_use_device()) return;
  std::vector<Told> results;
  check_device_parity(arrays, [&](const Spans& s) {
    results.push_back(active_device() == Device::cuda ? in_one_pass(making, s) : in_passes(making, s));
  });
  REQUIRE(results.size() == 2);
  CHECK(results[0].finite == results[1].finite);
  CHECK(results[0].largest == results[1].largest);
  CHECK((results[0].effect == results[1].effect));
  CHECK((results[0].ratios == results[1].ratios));
}

TEST_CASE("an update in one pass is the update in passes", "[kernel][update][cuda]") {
  const Quantizer stochastic{bf16, Rounding::stochastic};
  const WeightStorage nearest{{fp16}, {fp16}, {}};
  const WeightStorage random{{bf16}, stochastic, {.seed = 0, .step = 17, .site = 4}};
  for (const std::size_t size : parity_sizes) {
    std::vector<float> gradient = uniform_floats(size, -1, 1, 1);
    for (std::size_t i = 0; i < size; ++i) gradient[i] *= i % 5 == 0 ? 0.0f : i % 3 == 0 ? 1e-6f : 1e3f;
    const std::vector<std::vector<float>> ordinary{gradient, uniform_floats(size, -1, 1, 2),
                                                   uniform_floats(size, -1, 1, 3),
                                                   uniform_floats(size, 0, 1, 4)};
    std::vector<std::vector<float>> any = ordinary;
    any[0] = mixed_floats(size);
    for (const bool with_adam : {false, true}) {
      INFO(size << (with_adam ? ", adam" : ", sgd"));
      check({with_adam, true, 1.0f / 3, 0.7f, {}, nearest}, ordinary);
      check({with_adam, true, 0.5f, 1, {fp16}, random}, ordinary);
      check({with_adam, false, 1.0f / 1024, 1, {}, {}}, ordinary);
      check({with_adam, true, 1, 1, {}, nearest}, any);
      check({with_adam, false, 1, 1, {}, {}}, any);
    }
  }
}

}  // namespace
}  // namespace halfscope
