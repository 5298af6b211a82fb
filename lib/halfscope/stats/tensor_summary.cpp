// Tile by tile through the histogram, the rounding and the sums, while a tile is in the innermost cache.
#include <halfscope/stats/tensor_summary.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace {

constexpr std::size_t summary_tile = 4096;
static_assert(summarise_block % summary_tile == 0);

double sum_in_order(const std::array<double, CosineSums::lanes>& lanes) {
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

CosineTotals operator+(const CosineTotals& a, const CosineTotals& b) {
  return {a.xx + b.xx, a.xq + b.xq, a.qq + b.qq};
}

CosineTotals operator*(double times, const CosineTotals& a) {
  return {times * a.xx, times * a.xq, times * a.qq};
}

CosineTotals totals_of(const CosineSums& sums) {
  return {sum_in_order(sums.xx), sum_in_order(sums.xq), sum_in_order(sums.qq)};
}

}  // namespace

void TensorSummary::merge(const TensorSummary& following, std::int64_t times) {
  histogram_.merge(following.histogram_, times);
  for (std::size_t i = 0; i < energies_.size(); ++i) {
    energies_[i].all += following.energies_[i].all * static_cast<Uint128>(times);
    energies_[i].rounds_to_normal += following.energies_[i].rounds_to_normal * static_cast<Uint128>(times);
  }
  totals_ = totals_ + static_cast<double>(times) * following.totals_;
}

double TensorSummary::lost_energy(int scale_log2) const {
  const FlushEdge edge = flush_edge(histogram_.format());
  const int scale = std::clamp(scale_log2, -1000, 1000);
  double lost = 0, all = 0;
  for (int exponent = lowest_binade; exponent <= highest_binade; ++exponent) {
    const BinadeEnergy& energy = energies_[static_cast<std::size_t>(exponent - lowest_binade)];
    const int scaled = exponent + scale;
    Uint128 flushed = scaled < edge.binade ? energy.all : 0;
    if (scaled == edge.binade) {
      // The square of a significand of 1, cut to 16 bits, is 2^30.
      const auto powers = static_cast<Uint128>(histogram_.binade(exponent).at_power_of_two) << 30;
      flushed = edge.only_powers ? powers : energy.all - energy.rounds_to_normal;
    }
    lost += std::ldexp(static_cast<double>(flushed), 2 * exponent);
    all += std::ldexp(static_cast<double>(energy.all), 2 * exponent);
  }
  return all == 0 ? 0 : lost / all;
}

std::optional<double> TensorSummary::cosine() const {
  const double norms = std::sqrt(totals_.xx) * std::sqrt(totals_.qq);
  if (norms == 0 || !std::isfinite(norms) || !std::isfinite(totals_.xq)) return std::nullopt;
  return std::clamp(totals_.xq / norms, -1.0, 1.0);
}

SummaryPass::SummaryPass(const FloatFormat& format) : format_(format) {
  found_.edges = binade_edges(format);
}

void SummaryPass::add(std::span<const float> values) {
  while (!values.empty()) {
    const auto left = static_cast<std::size_t>(summarise_block - in_block_);
    const std::size_t count = std::min({summary_tile, values.size(), left});
    add_tile(values.first(count));
    values = values.subspan(count);
    in_block_ += static_cast<std::int64_t>(count);
    if (in_block_ == summarise_block) end_block();
  }
}

void SummaryPass::add_tile(std::span<const float> values) {
  std::array<float, summary_tile> buffer;
  const std::span rounded = std::span(buffer).first(values.size());
  energy_histogram(values, found_);
  round(values, rounded, {format_});
  add_cosine_sums(values, rounded, block_);
}

void SummaryPass::end_block() {
  totals_ = totals_ + totals_of(block_);
  block_ = {};
  in_block_ = 0;
}

TensorSummary SummaryPass::summary() {
  settle(found_);
  return {ExponentHistogram(found_.counts, format_), found_.energies, totals_ + totals_of(block_)};
}

}  // namespace halfscope
