// Lost updates of parameters, as the tracker records them.
#include <halfscope/stats/lost_updates.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/cast/detail/counted_round.hpp>
#include <halfscope/kernel/update/detail/update_lanes.hpp>
#include <halfscope/kernel/update/update_effect.hpp>
#include <halfscope/stats/trackers.hpp>

namespace halfscope {
namespace {

class LostUpdatesTracker final : public Tracker {
 public:
  [[nodiscard]] bool watches_updates() const override { return true; }
  [[nodiscard]] EventDelivery delivery() const override { return EventDelivery::merged; }

  void on_update(const UpdateEvent& event, StepObservations& step) override {
    const auto& [site, quantizer, counts] = event;
    step.updates.push_back(update_counters(site.tensor, counts.elements, counts.effect));
    step.histograms.push_back(
        {.tensor = std::string(site.tensor), .what = "update_ratio", .scale = 1, .histogram = counts.ratios});
  }
};

}  // namespace

UpdateCounters update_counters(std::string_view tensor, std::int64_t elements, const UpdateEffect& effect) {
  UpdateCounters counters{
      .tensor = std::string(tensor), .elements = elements, .nonzero = effect.nonzero, .lost = effect.lost};
  if (effect.intended > 0) counters.applied_over_intended = effect.applied / effect.intended;
  return counters;
}

WeightStorage weight_storage(const Site& site, const Quantizer& quantizer) {
  WeightStorage storage{quantizer, quantizer, {}};
  storage.stream.step = static_cast<std::uint32_t>(site.step);
  storage.stream.site = site_hash(site.tensor.data(), site.tensor.size());
  // Which of its neighbours a stochastic quantizer stored is not known; the nearer one is taken.
  if (storage.before.rounding == Rounding::stochastic) storage.before.rounding = Rounding::nearest_even;
  return storage;
}

UpdateCounters count_lost_updates(const Site& site, const Quantizer& quantizer,
                                  std::span<const float> weights, std::span<const float> updates) {
  if (weights.size() != updates.size()) {
    throw InvalidArgument(fmt::format(
        "count_lost_updates: {} has {} weights and {} updates; give as many of one as of the other",
        site.tensor, weights.size(), updates.size()));
  }
  return update_counters(site.tensor, static_cast<std::int64_t>(weights.size()),
                         update_effect(weights, updates, weight_storage(site, quantizer)));
}

ExponentHistogram update_ratios(std::span<const float> weights, std::span<const float> updates,
                                const FloatFormat& format) {
  detail::check_equal_sizes("update_ratios", weights.size(), updates.size());
  const BinadeEdges edges = binade_edges(format);
  if (active_device() == Device::cuda) {
    HistogramCounts counts;
    cuda::ratio_histogram(weights, updates, edges, counts);
    return ExponentHistogram(counts, format);
  }
  const std::size_t parts = std::clamp<std::size_t>(weights.size() / (2 * ratio_block), 1,
                                                    static_cast<std::size_t>(thread_count()));
  std::vector<HistogramCounts> counts(parts);
  parallel_for(static_cast<std::int64_t>(parts), [&](std::int64_t index) noexcept {
    const auto part = static_cast<std::size_t>(index);
    const std::size_t first = weights.size() * part / parts;
    const std::size_t count = weights.size() * (part + 1) / parts - first;
    add_update_ratios(weights.subspan(first, count), updates.subspan(first, count), counts[part], edges);
  });
  ExponentHistogram total(format);
  for (const HistogramCounts& part : counts) total.merge(ExponentHistogram(part, format));
  return total;
}

std::unique_ptr<Tracker> make_lost_updates(const TrackerOptions& /*options*/) {
  return std::make_unique<LostUpdatesTracker>();
}

}  // namespace halfscope
