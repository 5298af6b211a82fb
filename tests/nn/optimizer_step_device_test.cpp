// An optimizer's step makes the bits and the counts of one operation after the other, on either device.
#include "lib/nn/optimizer_step.hpp"

#include <array>
#include <cmath>
#include <utility>

#include <halfscope/device/readback.hpp>
#include <halfscope/stats/lost_updates.hpp>

#include "lib/nn/elementwise.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::optimizer_step_device_test {
namespace {

constexpr SgdStep sgd_step{.learning_rate = 0.01f, .momentum = 0.9f};
constexpr AdamStep adam_step{.learning_rate = 0.001f,
                             .beta1 = 0.9f,
                             .beta2 = 0.999f,
                             .correction1 = 0.271f,
                             .correction2 = 0.002997f,
                             .epsilon = 1e-8f};

constexpr RmspropStep rmsprop_step{.learning_rate = 0.01f, .decay = 0.9f, .momentum = 0.9f, .epsilon = 1e-3f};
/// A rule, and which of the arrays below are its state.
struct Case {
  const char* name;
  UpdateRule rule;
  std::vector<std::size_t> slots;
};
const std::vector<Case> rules{{"sgd", sgd_step, {2}},
                              {"adam", adam_step, {2, 3}},
                              {"adamw", AdamwStep{adam_step, 0.01f}, {2, 3}},
                              {"adagrad", AdagradStep{.learning_rate = 0.01f, .epsilon = 1e-8f}, {3}},
                              {"rmsprop", rmsprop_step, {3, 2}},
                              {"muon", MuonStep{.learning_rate = 0.01f, .decay = 0.01f}, {2}}};

/// The most mantissa bits of a weight whose sum is rounded to odd before it is stored.
constexpr FloatFormat e8m21{8, 21};

/// How an update is made.
struct Making {
  Case rule;
  bool watched = true;
  float unscale = 1, clip = 1;
  Quantizer state{};
  WeightStorage storage{};
};

/// Reports of an update.
struct Told {
  bool finite = true;
  float largest = 0;  ///< largest finite new weight
  UpdateEffect effect{};
  ExponentHistogram ratios{};
};

Told told(float largest) {
  return {.finite = std::isfinite(largest), .largest = std::isfinite(largest) ? largest : 0};
}

/// The optimizer's step as `making` says, without what it says of watching.
void step(const Making& making, const WeightUpdate& update, const Spans& s) {
  std::vector<std::span<float>> slots;
  for (const std::size_t slot : making.rule.slots) slots.push_back(s[slot]);
  optimizer_step(update, making.rule.rule, making.state, slots);
}

template <typename Element, std::size_t... slot>
float updated(const Element& element, const Making& making, const Spans& s, float gradient, std::size_t i,
              std::index_sequence<slot...> /*all*/) {
  return element(gradient, s[1][i], s[making.rule.slots[slot]][i]...);
}

/// The update of each weight by the rule's own arithmetic; the state becomes the next step's.
std::vector<float> updates_of(const Making& making, std::span<const float> gradient, const Spans& s) {
  return std::visit(
      [&]<typename Rule>(const Rule& rule) {
        const typename Rule::template Element<RoundState> element(rule, RoundState{making.state});
        std::vector<float> updates(gradient.size());
        for (std::size_t i = 0; i < updates.size(); ++i)
          updates[i] = updated(element, making, s, gradient[i], i, std::make_index_sequence<Rule::slots>{});
        return updates;
      },
      making.rule.rule);
}

/// Gradient, weights, two moments. On the CPU.
Told in_passes(const Making& making, const Spans& s) {
  std::vector<float> gradient(s[0].begin(), s[0].end());
  for (const float factor : {making.unscale, making.clip}) scale(gradient, factor, gradient);
  const std::vector<float> update = updates_of(making, gradient, s);
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
  const auto counters = readback.take<std::int64_t>(watch_counters);
  const auto sums = readback.take<UpdateSums>(update_tiles(s[1].size()));
  WeightUpdate update{.gradient = s[0],
                      .unscale = making.unscale,
                      .clip = making.clip,
                      .weights = s[1],
                      .largest = readback.device_values(largest)};
  if (making.watched) {
    update.watch = {making.storage, readback.device_values(counters), readback.device_values(sums)};
  }
  step(making, update, s);
  readback.read();
  Told all = told(from_bits(readback.values(largest)[0]));
  all.effect = watched_effect(readback.values(counters), readback.values(sums));
  HistogramCounts ratios;
  add_bins_to(ratios, readback.values(counters).first(binned::size), binade_edges(fp16));
  all.ratios = ExponentHistogram(ratios);
  return all;
}

void check_same(const Told& one, const Told& other) {
  CHECK(one.finite == other.finite);
  CHECK(one.largest == other.largest);
  CHECK((one.effect == other.effect));
  CHECK((one.ratios == other.ratios));
}

void check(const Making& making, const std::vector<std::vector<float>>& arrays) {
  auto expected = arrays, found = arrays;
  const auto spans_of = [](std::vector<std::vector<float>>& all) { return Spans(all.begin(), all.end()); };
  const Told passes = in_passes(making, spans_of(expected)), pass = in_one_pass(making, spans_of(found));
  check_same(pass, passes);
  for (std::size_t i = 1; i < arrays.size(); ++i) CHECK(same_but_nan_bits(found[i], expected[i]));
  if (!can_use_device()) return;
  std::vector<Told> results;
  check_device_parity(arrays, [&](const Spans& s) { results.push_back(in_one_pass(making, s)); });
  REQUIRE(results.size() == 2);
  check_same(results[0], results[1]);
}

TEST_CASE("an optimizer's step is its operations one after the other", "[kernel][update][cuda]") {
  const Quantizer stochastic{bf16, Rounding::stochastic};
  const WeightStorage nearest{{fp16}, {fp16}, {}};
  const WeightStorage random{{bf16}, stochastic, {.seed = 0, .step = 17, .site = 4}};
  const WeightStorage widest{{e8m21}, {e8m21}, {}};
  for (const std::size_t size : parity_sizes) {
    std::vector<float> gradient = uniform_floats(size, -1, 1, 1);
    for (std::size_t i = 0; i < size; ++i) gradient[i] *= i % 5 == 0 ? 0.0f : i % 3 == 0 ? 1e-6f : 1e3f;
    const std::vector<std::vector<float>> ordinary{gradient, uniform_floats(size, -1, 1, 2),
                                                   uniform_floats(size, -1, 1, 3),
                                                   uniform_floats(size, 0, 1, 4)};
    std::vector<std::vector<float>> any = ordinary;
    any[0] = mixed_floats(size);
    for (const Case& rule : rules) {
      INFO(size << ", " << rule.name);
      check({rule, true, 1.0f / 3, 0.7f, {}, nearest}, ordinary);
      check({rule, true, 1, 1, {}, widest}, ordinary);
      check({rule, true, 0.5f, 1, {fp16}, random}, ordinary);
      check({rule, true, 0.5f, 1, {fp16, Rounding::toward_zero}, random}, ordinary);
      check({rule, false, 1.0f / 1024, 1, {}, {}}, ordinary);
      check({rule, true, 1, 1, {}, nearest}, any);
      check({rule, false, 1, 1, {}, {}}, any);
    }
  }
}

TEST_CASE("an optimizer's state is rounded in every way alike on the device", "[kernel][update][cuda]") {
  constexpr std::size_t size = 1003;
  const std::vector<std::vector<float>> arrays{uniform_floats(size, -1, 1, 1), uniform_floats(size, -1, 1, 2),
                                               uniform_floats(size, -1, 1, 3), uniform_floats(size, 0, 1, 4)};
  using enum Rounding;
  for (const FloatFormat& format : {bf16, fp8_e5m2}) {
    for (const Rounding rounding : {nearest_even, nearest_away, toward_zero, up, down, to_odd}) {
      const Quantizer state{format, rounding};
      for (const Case& rule : rules) {
        INFO(to_string(state) << ", " << rule.name);
        for (const bool watched : {false, true}) check({rule, watched, 0.5f, 0.7f, state, {}}, arrays);
      }
    }
  }
}

}  // namespace
}  // namespace halfscope::optimizer_step_device_test
