// Keys and checks of a histogram's record.
#include <halfscope/stats/histogram_record.hpp>

#include <fmt/format.h>

#include <array>
#include <utility>

#include <halfscope/core/error.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace {

constexpr std::array per_binade{std::pair{"counts", &BinadeCounts::all},
                                std::pair{"pow2", &BinadeCounts::at_power_of_two},
                                std::pair{"top", &BinadeCounts::rounds_to_overflow},
                                std::pair{"subnormal_carry", &BinadeCounts::rounds_to_normal}};
constexpr std::array beside_binades{std::pair{"zeros", &HistogramCounts::zeros},
                                    std::pair{"negative_zeros", &HistogramCounts::negative_zeros},
                                    std::pair{"infinities", &HistogramCounts::infinities},
                                    std::pair{"nans", &HistogramCounts::nans}};

/// The binades from the first to the last that hold anything; the last of all where none does.
BinadeRange filled(const ExponentHistogram& histogram) {
  std::span<const BinadeCounts> binades = histogram.counts().binades;
  int first = ExponentHistogram::first_exponent;
  for (; binades.size() > 1 && binades.front().all == 0; ++first) binades = binades.subspan(1);
  while (binades.size() > 1 && binades.back().all == 0) binades = binades.first(binades.size() - 1);
  return {first, binades};
}

/// Puts a list into the counters that start at `binades`. The first list has all elements of each binade.
void take(std::span<BinadeCounts> binades, std::pair<const char*, std::int64_t BinadeCounts::*> member,
          std::span<const std::int64_t> list) {
  const auto [key, field] = member;
  if (list.size() != binades.size()) {
    throw InvalidArgument(
        fmt::format("histogram record: {} has {} binades, counts has {}", key, list.size(), binades.size()));
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    binades[i].*field = list[i];
    if (list[i] < 0 || list[i] > binades[i].all)
      throw InvalidArgument(fmt::format("histogram record: {}: {} of {}", key, list[i], binades[i].all));
  }
}

}  // namespace

void write_record(const ExponentHistogram& histogram, const RecordWriter& writer) {
  const auto [first, binades] = filled(histogram);
  writer.integer("first_exponent", first);
  std::vector<std::int64_t> list(binades.size());
  for (const auto& [key, field] : per_binade) {
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = binades[i].*field;
    writer.list(key, list);
  }
  for (const auto& [key, field] : beside_binades) writer.integer(key, histogram.counts().*field);
}

HistogramCounts read_record(const RecordReader& reader) {
  HistogramCounts counts;
  const std::vector<std::int64_t> all = reader.list("counts");
  const std::int64_t first = reader.integer("first_exponent");
  if (first < lowest_binade || first > highest_binade + 1 - std::ssize(all))
    throw InvalidArgument("histogram record: binades outside -149 to 127");
  const std::span binades =
      std::span(counts.binades).subspan(static_cast<std::size_t>(first - lowest_binade), all.size());
  for (const auto& member : per_binade) take(binades, member, reader.list(member.first));
  for (const auto& [key, field] : beside_binades) {
    counts.*field = reader.integer(key);
    if (counts.*field < 0)
      throw InvalidArgument(fmt::format("histogram record: {} = {} is negative", key, counts.*field));
  }
  return counts;
}

}  // namespace halfscope
