// Lost updates, tile by tile through the rounding kernel.
#include <halfscope/stats/update_loss.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/round.hpp>

namespace halfscope {
namespace {

constexpr std::size_t tile = 1024;

/// a + b rounded to odd: an inexact sum ends in a 1 bit, so that rounding it again, to at most 21 mantissa
/// bits, gives what rounding the exact sum would. The error of the nearest sum is Knuth's TwoSum.
float add_to_odd(float a, float b) {
  const float sum = a + b;
  const float b_part = sum - a;
  const float error = (a - (sum - b_part)) + (b - b_part);
  const std::uint32_t bits = to_bits(sum);
  const bool inexact = std::isfinite(error) && error != 0;
  if (!inexact || (bits & 1u) != 0) return sum;
  return from_bits(std::signbit(error) == std::signbit(sum) ? bits + 1u : bits - 1u);
}

void require_same_size(const UpdateEvent& event) {
  if (event.before.size() == event.update.size()) return;
  throw RequestError("update_loss: " + std::string(event.site.tensor) + " has " +
                     std::to_string(event.before.size()) + " weights and " +
                     std::to_string(event.update.size()) + " updates; give as many of one as of the other");
}

struct Totals {
  double applied = 0;
  double intended = 0;
};

void count_tile(std::span<const float> stored, std::span<const float> updated, std::span<const float> update,
                UpdateCounters& counters, Totals& totals) {
  for (std::size_t i = 0; i < update.size(); ++i) {
    if (update[i] == 0) continue;
    ++counters.nonzero;
    if (updated[i] == stored[i]) ++counters.lost;
    const double applied = std::abs(double{updated[i]} - double{stored[i]});
    if (!std::isfinite(applied)) continue;
    totals.applied += applied;
    totals.intended += std::abs(double{update[i]});
  }
}

class UpdateLoss final : public Tracker {
 public:
  void on_update(const UpdateEvent& event, StepObservations& step) override {
    step.updates.push_back(count_lost_updates(event));
    step.histograms.push_back({.tensor = std::string(event.site.tensor),
                               .what = "update_ratio",
                               .scale = 1,
                               .histogram = update_ratios(event.before, event.update)});
  }
};

}  // namespace

UpdateCounters count_lost_updates(const UpdateEvent& event) {
  require_same_size(event);
  UpdateCounters counters{.tensor = std::string(event.site.tensor),
                          .elements = static_cast<std::int64_t>(event.before.size())};
  Totals totals;
  std::array<float, tile> stored_buffer, updated_buffer;
  const std::uint32_t site = site_hash(event.site.tensor.data(), event.site.tensor.size());
  const auto step = static_cast<std::uint32_t>(event.site.step);
  // Which of its neighbours a stochastic quantizer stored is not known; the nearer one is taken.
  Quantizer storage = event.quantizer;
  if (storage.rounding == Rounding::stochastic) storage.rounding = Rounding::nearest_even;
  const bool wide = event.quantizer.format.mantissa_bits > 21;
  for (std::size_t start = 0; start < event.before.size(); start += tile) {
    const std::size_t count = std::min(tile, event.before.size() - start);
    const std::span stored(stored_buffer.data(), count), updated(updated_buffer.data(), count);
    const auto update = event.update.subspan(start, count);
    round(event.before.subspan(start, count), stored, storage);
    for (std::size_t i = 0; i < count; ++i) {
      updated[i] = wide ? stored[i] + update[i] : add_to_odd(stored[i], update[i]);
    }
    round(updated, updated, event.quantizer, RandomStream{start / tile, step, site});
    count_tile(stored, updated, update, counters, totals);
  }
  if (totals.intended > 0) counters.applied_over_intended = totals.applied / totals.intended;
  return counters;
}

ExponentHistogram update_ratios(std::span<const float> weights, std::span<const float> updates) {
  ExponentHistogram histogram;
  std::array<float, tile> ratios;
  for (std::size_t start = 0; start < weights.size(); start += tile) {
    std::size_t kept = 0;
    for (std::size_t i = start; i < std::min(weights.size(), start + tile); ++i) {
      ratios[kept] = std::abs(updates[i] / weights[i]);
      kept += weights[i] != 0 && updates[i] != 0 ? 1u : 0u;
    }
    histogram.add(std::span(ratios).first(kept));
  }
  return histogram;
}

std::unique_ptr<Tracker> make_update_loss(const TrackerOptions& /*options*/) {
  return std::make_unique<UpdateLoss>();
}

}  // namespace halfscope
