// A table of 32-bit counts of words, which is emptied into 64-bit counts of codes before it can wrap.
#include <halfscope/kernel/histogram/code_counts.hpp>

#include <halfscope/kernel/histogram/detail/code_counts_simd.hpp>
#include <halfscope/kernel/histogram/detail/histogram_bins.hpp>

#include <algorithm>
#include <limits>

namespace halfscope {
namespace {

constexpr std::size_t step = std::size_t{1} << 24;  // bytes between two looks at how full the table is

/// Adds a float that occurs `times` times.
void add_number(float number, std::int64_t times, const OrderedEdges& edges, HistogramCounts& counts) {
  const std::uint32_t magnitude = magnitude_bits(number);
  if (magnitude >= infinity_bits) {
    (magnitude == infinity_bits ? counts.infinities : counts.nans) += times;
  } else if (magnitude == 0) {
    counts.zeros += times;
    if (to_bits(number) != 0) counts.negative_zeros += times;
  } else {
    constexpr std::uint32_t subnormal_binades = -126 - lowest_binade, first_normal = 1u << 23;
    const auto [binade, significand] =
        magnitude < first_normal ? normalised_subnormal(magnitude)
                                 : NormalisedSubnormal{(magnitude >> 23) - 1 + subnormal_binades, magnitude};
    const auto fraction = static_cast<std::int32_t>(significand & (first_normal - 1));
    const auto number_class = static_cast<std::uint32_t>(fraction_class(fraction, edges));
    add_to_binade(counts.binades.at(binade), number_class, times, edges);
    counts.max_abs = std::max(counts.max_abs, from_bits(magnitude));
  }
}

}  // namespace

CodeCounts::CodeCounts(std::size_t bytes) : bytes_(bytes) {}

/// Made when first needed: a part of a tensor is merged before it has any.
std::span<std::int64_t> CodeCounts::totals_to_add_to() {
  totals_.resize(code_count(bytes_));
  return totals_;
}

void CodeCounts::add(std::span<const std::byte> elements) {
  if (elements.size() % 2 != 0) {
    const auto last = static_cast<std::size_t>(elements.back());
    ++totals_to_add_to()[last == 128 ? last : last % 128];
    elements = elements.first(elements.size() - 1);
  }
  for (; !elements.empty(); elements = elements.subspan(std::min(step, elements.size()))) {
    const auto here = elements.first(std::min(step, elements.size()));
    if (most_ + here.size() > std::numeric_limits<std::uint32_t>::max()) settle();
    most_ += here.size();
    table_.resize(WordPlaces::magnitudes + WordPlaces::zeros);
    negative_zeros_ += dispatch_isa(
        [&]<Isa isa>() { return count_words_isa<isa>(here.data(), here.size() / 2, bytes_, table_.data()); });
  }
}

void CodeCounts::merge(const CodeCounts& other) {
  const std::span<std::int64_t> totals = totals_to_add_to();
  for (std::size_t code = 0; code < other.totals_.size(); ++code) totals[code] += other.totals_[code];
  other.add_table_to(totals);
}

void CodeCounts::settle() {
  add_table_to(totals_to_add_to());
  table_ = {};
  negative_zeros_ = 0;
  most_ = 0;
}

/// A word of two codes is counted as both of them.
void CodeCounts::add_table_to(std::span<std::int64_t> totals) const {
  if (table_.empty()) return;
  const auto words = std::span(table_).first(WordPlaces::magnitudes);
  for (std::size_t word = 0; word < words.size(); ++word) {
    if (bytes_ == 2) {
      totals[word] += words[word];
    } else {
      totals[word % 256 % 128] += words[word];
      totals[word / 256] += words[word];
    }
  }
  const std::int64_t codes_per_word = bytes_ == 2 ? 1 : 2;
  for (const std::uint32_t zeros : std::span(table_).subspan(WordPlaces::magnitudes)) {
    totals.front() += codes_per_word * zeros;
  }
  totals.front() -= negative_zeros_;
  totals.back() += negative_zeros_;
}

void add_codes(const CodeCounts& codes, std::span<const float> numbers, HistogramCounts& counts,
               const BinadeEdges& edges) {
  const std::span<const std::int64_t> totals = codes.totals();
  const OrderedEdges ordered(edges);
  for (std::size_t code = 0; code < totals.size(); ++code)
    if (totals[code] != 0) add_number(numbers[code], totals[code], ordered, counts);
}

}  // namespace halfscope
