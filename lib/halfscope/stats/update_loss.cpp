// Lost updates, tile by tile through the rounding kernel.
#include <halfscope/stats/update_loss.hpp>

#include <algorithm>
#include <array>

#include <halfscope/kernel/round.hpp>
#include <halfscope/kernel/update_tally.hpp>

namespace halfscope {
namespace {

constexpr std::size_t tile = 1024;
static_assert(tile % UpdateTally::lanes == 0);
constexpr std::size_t ratio_tile = std::size_t{1}
                                   << 15;  // a call of the histogram's kernel clears its tables

void require_same_size(const UpdateEvent& event) {
  if (event.before.size() == event.update.size()) return;
  throw RequestError("update_loss: " + std::string(event.site.tensor) + " has " +
                     std::to_string(event.before.size()) + " weights and " +
                     std::to_string(event.update.size()) + " updates; give as many of one as of the other");
}

double sum_of(const std::array<double, UpdateTally::lanes>& lanes) {
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
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
  UpdateTally tally;
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
    if (wide) {
      for (std::size_t i = 0; i < count; ++i) updated[i] = stored[i] + update[i];
    } else {
      add_to_odd(stored, update, updated);
    }
    round(updated, updated, event.quantizer, RandomStream{start / tile, step, site});
    tally_updates({stored.data(), updated.data(), update.data(), count}, tally);
  }
  counters.nonzero = tally.nonzero;
  counters.lost = tally.lost;
  const double intended = sum_of(tally.intended);
  if (intended > 0) counters.applied_over_intended = sum_of(tally.applied) / intended;
  return counters;
}

ExponentHistogram update_ratios(std::span<const float> weights, std::span<const float> updates) {
  HistogramCounts counts;
  std::vector<float> buffer(std::min(weights.size(), ratio_tile));
  for (std::size_t start = 0; start < weights.size(); start += ratio_tile) {
    const std::span ratios = std::span(buffer).first(std::min(ratio_tile, weights.size() - start));
    const std::size_t without =
        update_ratios(weights.subspan(start, ratios.size()), updates.subspan(start, ratios.size()), ratios);
    histogram(ratios, counts);
    counts.zeros -= static_cast<std::int64_t>(without);
  }
  return ExponentHistogram(counts);
}

std::unique_ptr<Tracker> make_update_loss(const TrackerOptions& /*options*/) {
  return std::make_unique<UpdateLoss>();
}

}  // namespace halfscope
