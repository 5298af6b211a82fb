// Loss scalers against independent models of their rules, over random steps.
#include <halfscope/core/random.hpp>
#include <halfscope/scaling/scalers.hpp>

#include <cmath>

#include "tests/support/catch.hpp"

namespace halfscope::scaler_models_test {
namespace {

/// torch.amp.GradScaler and TensorFlow's DynamicLossScale as their documentation states them: FP32 scale,
/// halved on overflow (TensorFlow: not below 1), doubled after `interval` good steps in a row if finite.
struct Model {
  float scale;
  float floor;
  int interval;
  int streak = 0;

  void step(bool overflow) {
    if (overflow) {
      streak = 0;
      scale = scale / 2;
      if (scale < floor) scale = floor;
      return;
    }
    if (++streak < interval) return;
    streak = 0;
    if (scale < 0x1p127f) scale = 2 * scale;
  }
};

TEST_CASE("GradScaler and TensorFlow equal a model over random overflows", "[scaling]") {
  constexpr std::uint64_t sequences = 100000;
  constexpr int length = 40;
  for (const auto& [name, floor] : {std::pair("dynamic", 0.0f), std::pair("tensorflow", 1.0f)}) {
    std::int64_t different = 0, moved = 0;
    for (std::uint64_t sequence = 0; sequence < sequences; ++sequence) {
      const RandomStream random{.seed = sequence};
      const int interval = 1 + static_cast<int>(random.bits(0) % 8);
      // From the floor, or FP32's smallest number, to FP32's end; overflows from never to most steps.
      const int lowest = floor == 0 ? -149 : 0;
      const float initial = std::ldexp(
          1.0f, lowest + static_cast<int>(random.bits(1) % static_cast<std::uint32_t>(128 - lowest)));
      const std::uint32_t share = random.bits(2) % 10;
      Model model{initial, floor, interval};
      const auto scaler =
          make_scaler(name, {{"initial_scale", initial}, {"growth_interval", static_cast<double>(interval)}});
      for (std::uint64_t step = 0; step < length; ++step) {
        const bool overflow = random.bits(4 + step) % 10 < share;
        model.step(overflow);
        different += scaler->update({.finite = !overflow}) == overflow ? 0 : 1;
        different += scaler->scale() == static_cast<double>(model.scale) ? 0 : 1;
      }
      moved += scaler->scale() != static_cast<double>(initial) ? 1 : 0;
    }
    INFO(name);
    CHECK(different == 0);
    CHECK(moved > 50000);
  }
}

/// fairseq's rule by the numbers of its steps, as fairseq keeps them.
struct FairseqModel {
  double scale, tolerance;
  int window;
  int step = 0, last_overflow = -1, last_move = -1, overflows = 0;

  void take(bool overflow) {
    if (overflow) {
      last_overflow = step;
      ++overflows;
      if (static_cast<double>(overflows) / (step - last_move) >= tolerance) {
        scale /= 2;
        last_move = step;
        overflows = 0;
      }
    } else if ((step - last_overflow) % window == 0) {
      scale *= 2;
      last_move = step;
    }
    ++step;
  }
};

TEST_CASE("fairseq tolerates a share of overflows", "[scaling]") {
  for (std::uint64_t sequence = 0; sequence < 300; ++sequence) {
    const RandomStream random{.seed = 1000 + sequence};
    const double tolerance = 0.1 * (random.bits(0) % 6);
    FairseqModel model{.scale = 0x1p30, .tolerance = tolerance, .window = 5};
    const auto scaler =
        make_scaler("fairseq", {{"initial_scale", 0x1p30}, {"growth_interval", 5}, {"tolerance", tolerance}});
    for (std::uint64_t i = 1; i <= 60; ++i) {
      const bool overflow = random.bits(i) % 10 < 3;
      model.take(overflow);
      (void)scaler->update({.finite = !overflow});
      REQUIRE(scaler->scale() == model.scale);
    }
  }
}

TEST_CASE("PopART moves every step, by the upper eighth of the range", "[scaling]") {
  // 65504 / 8 = 8188: one such element in sixteen is more than one in ten million.
  struct Row {
    std::vector<float> values;
    double factor;
  };
  const std::vector<Row> rows{
      {{8188.0f, 1.0f}, 0.5}, {{-8188.0f, 1.0f}, 0.5}, {{8187.999f, 1.0f}, 2}, {{65504.0f}, 0.5}, {{0.0f}, 2},
      {{9e4f, 0.0f}, 0.5}};
  for (const Row& row : rows) {
    const auto scaler = make_scaler("popart");
    ExponentHistogram histogram;
    histogram.add(row.values);
    CHECK_FALSE(scaler->update({.finite = true, .max_abs = 1, .histogram = &histogram}));
    CHECK(scaler->scale() == 65536 * row.factor);
    // The same gradients counted in units of 2^-5.
    std::vector<float> larger = row.values;
    for (float& value : larger) value *= 32;
    ExponentHistogram moved;
    moved.add(larger);
    const auto other = make_scaler("popart");
    (void)other->update({.finite = true, .max_abs = 1, .histogram = &moved, .histogram_log2 = -5});
    CHECK(other->scale() == scaler->scale());
  }
  std::vector<float> few(1 << 16, 1.0f);
  few[77] = 1e4f;
  ExponentHistogram histogram;
  histogram.add(few);
  const auto tolerant = make_scaler("popart", {{"tolerance", 0x1p-16}});
  (void)tolerant->update({.finite = true, .max_abs = 1e4f, .histogram = &histogram});
  CHECK(tolerant->scale() == 0x1p17);
}

/// LogMax in double, from the definition: sums over the whole history instead of running means.
double logmax_of(const std::vector<double>& logs) {
  const auto mean = [&](double decay, int power) {
    double sum = 0, weights = 0;
    for (std::size_t i = 0; i < logs.size(); ++i) {
      const double weight = std::pow(decay, static_cast<double>(logs.size() - 1 - i));
      sum += weight * std::pow(logs[i], power);
      weights += weight;
    }
    return sum / weights;
  };
  const double variance = mean(0.999, 2) - mean(0.999, 1) * mean(0.999, 1);
  const double scale = std::exp2(16 - mean(0.99, 1) - 3.09 * std::sqrt(std::max(0.0, variance)));
  return std::min(std::max(scale, 1.0), 16384.0);
}

TEST_CASE("LogMax equals its definition", "[scaling]") {
  const auto scaler = make_scaler("openseq2seq_logmax");
  CHECK(scaler->scale() == 1);
  const RandomStream random{.seed = 3};
  std::vector<double> logs;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const bool overflow = i % 37 == 5;
    const auto max_abs = std::ldexp(1.0f + random.uniform(i), -static_cast<int>(random.bits(1000 + i) % 4));
    const auto seen = static_cast<float>(max_abs * scaler->scale());
    logs.push_back(overflow ? 16 : std::log2(seen / scaler->scale()));
    CHECK(scaler->update({.finite = !overflow, .max_abs = seen}) == overflow);
    REQUIRE(scaler->scale() == Approx(logmax_of(logs)).epsilon(1e-5));
  }
  const double before = scaler->scale();
  (void)scaler->update({.max_abs = 0});
  CHECK(scaler->scale() == before);
}

}  // namespace
}  // namespace halfscope::scaler_models_test
