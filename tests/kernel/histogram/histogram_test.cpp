// The histogram kernel on every instruction set, against counting with frexp.
#include <halfscope/core/isa.hpp>
#include <halfscope/kernel/histogram/binned_histogram.hpp>

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::histogram_test {
namespace {

/// By definition: one number at a time, in double, where FP32 subnormals are normal.
HistogramCounts count_one_by_one(std::span<const float> values,
                                 const BinadeEdges& edges = {.rounds_to_overflow = 0x7FF000,
                                                             .rounds_to_normal = 0x7FE000}) {
  HistogramCounts counts;
  for (const float x : values) {
    if (std::isnan(x)) {
      ++counts.nans;
    } else if (std::isinf(x)) {
      ++counts.infinities;
    } else if (x == 0) {
      ++counts.zeros;
      counts.negative_zeros += std::signbit(x) ? 1 : 0;
    } else {
      const int exponent = std::ilogb(double{x});
      const double fraction_field = std::ldexp(std::abs(double{x}), 23 - exponent) - 0x1p23;
      BinadeCounts& binade = counts.binades[static_cast<std::size_t>(exponent - lowest_binade)];
      ++binade.all;
      binade.at_power_of_two += fraction_field == 0 ? 1 : 0;
      binade.rounds_to_overflow += fraction_field >= edges.rounds_to_overflow ? 1 : 0;
      binade.rounds_to_normal += fraction_field >= edges.rounds_to_normal ? 1 : 0;
      counts.max_abs = std::max(counts.max_abs, std::abs(x));
    }
  }
  return counts;
}

/// Random bits, and numbers at the edges of the classes in every binade.
std::vector<float> values_of_every_class(std::size_t count) {
  std::vector<float> edges = special_floats();
  for (std::uint32_t field = 0; field < 256; ++field) {
    for (const std::uint32_t fraction : {0u, 1u, 0x7FDFFFu, 0x7FE000u, 0x7FEFFFu, 0x7FF000u, 0x7FFFFFu}) {
      edges.push_back(from_bits((field << 23) | fraction));
      edges.push_back(from_bits((field << 23) | fraction | sign_bit));
    }
  }
  for (std::uint32_t bit = 0; bit < 23; ++bit) {  // the subnormal binades
    for (const std::uint32_t below : {0u, 1u, (1u << bit) - 1u})
      edges.push_back(from_bits((1u << bit) | below));
  }
  std::vector<float> values = random_floats(count, 5);
  for (std::size_t i = 0; i < count; i += 2) values[i] = edges[(i / 2) % edges.size()];
  return values;
}

TEST_CASE("histograms count every number once, in its place", "[kernel][histogram]") {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(name_of(isa));
    for (const std::size_t size : {0u, 1u, 2u, 7u, 31u, 1023u, 1024u, 1025u, 257u * 259u, 300'000u}) {
      const std::vector<float> values = values_of_every_class(size);
      HistogramCounts counts;
      histogram(values, counts);
      CHECK(counts == count_one_by_one(values));
    }
  }
}

/// Numbers of few binades, as tensors hold them, a third of them zeros; one in `rarity` is any number at all,
/// but not among the first `plain`.
std::vector<float> values_of_a_tensor(std::size_t count, std::size_t rarity, std::size_t plain) {
  const std::vector<float> any = values_of_every_class(10'007);
  const RandomStream random{.seed = 6};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float number = std::ldexp(random.uniform(i) - 0.5f, -static_cast<int>(random.bits(i) % 9));
    values[i] = i % 3 == 0 ? (i % 2 == 0 ? 0.0f : -0.0f) : number;
    if (i >= plain && random.bits(count + i) % rarity == 0) values[i] = any[i % any.size()];
  }
  return values;
}

TEST_CASE("numbers that few others are like are counted in their place", "[kernel][histogram]") {
  for (const std::size_t rarity : {5u, 40u, 150u, 1'000u, 100'000u}) {
    for (const std::size_t plain : {0u, 1500u, 70'000u}) {
      for (const std::size_t size : {4096u, 5119u, 65'537u, 127u * 1024u, 127u * 1024u + 1u, 300'000u}) {
        const std::vector<float> values = values_of_a_tensor(size, rarity, plain);
        const HistogramCounts expected = count_one_by_one(values);
        for (const Isa isa : available_isas()) {
          const ForcedIsa forced(isa);
          INFO(name_of(isa) << ", one in " << rarity << " after " << plain << " of " << size);
          HistogramCounts counts;
          histogram(values, counts);
          CHECK(counts == expected);
        }
      }
    }
  }
}

TEST_CASE("one number far from all others is counted in its place", "[kernel][histogram]") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float other : {0.0f, -0.0f, 1e-30f, 0x1p-62f, 1e-42f, 16.0f, 1e6f, -1e30f, infinity, -infinity,
                            std::numeric_limits<float>::quiet_NaN()}) {
    CAPTURE(other);
    std::vector<float> values = uniform_floats(8192, 1, 2, 9);
    values[5000] = other;
    const HistogramCounts expected = count_one_by_one(values);
    for (const Isa isa : available_isas()) {
      const ForcedIsa forced(isa);
      INFO(name_of(isa));
      HistogramCounts counts;
      histogram(values, counts);
      CHECK(counts == expected);
    }
  }
}

TEST_CASE("numbers of more and more binades are counted", "[kernel][histogram]") {
  const RandomStream random{.seed = 7};
  for (const std::uint32_t binades : {1u, 31u, 32u, 44u, 59u, 60u, 61u, 62u, 63u, 64u, 65u, 250u}) {
    std::vector<float> values(150'000);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t field = 252 - random.bits(2 * i) % binades;
      values[i] = from_bits(field << 23 | random.bits(2 * i + 1) % (1u << 23)) * (i % 2 == 0 ? 1.0f : -1.0f);
    }
    for (const Isa isa : available_isas()) {
      const ForcedIsa forced(isa);
      INFO(name_of(isa) << ", " << binades << " binades");
      HistogramCounts counts;
      histogram(values, counts);
      CHECK(counts == count_one_by_one(values));
    }
  }
}

TEST_CASE("a tensor that begins with zeros, or is nothing else, is counted", "[kernel][histogram]") {
  std::vector<float> values = values_of_a_tensor(20'000, 1'000, 0);
  for (const std::size_t zeros : {1024u, 3000u, 20'000u}) {
    std::fill_n(values.begin(), zeros, 0.0f);
    for (const float unit : {1.0f, 0x1p-120f, 0x1p+100f}) {
      std::vector<float> scaled = values;
      for (float& x : scaled) x *= unit;
      for (const Isa isa : available_isas()) {
        const ForcedIsa forced(isa);
        INFO(name_of(isa) << ", " << zeros << " zeros, unit " << unit);
        HistogramCounts counts;
        histogram(scaled, counts);
        CHECK(counts == count_one_by_one(scaled));
      }
    }
  }
}

TEST_CASE("histograms count at the edges of any format, whichever comes first", "[kernel][histogram]") {
  const std::vector<float> values = random_floats(100'000, 8);
  for (const BinadeEdges& edges :
       {BinadeEdges{.rounds_to_overflow = 0x680001, .rounds_to_normal = 0x700000}, BinadeEdges{1, 0x400000},
        BinadeEdges{0x800000, 0x7FFFFF}, BinadeEdges{5, 5}}) {
    for (const Isa isa : available_isas()) {
      const ForcedIsa forced(isa);
      INFO(name_of(isa) << ", edges " << edges.rounds_to_overflow << " and " << edges.rounds_to_normal);
      HistogramCounts counts;
      histogram(values, counts, edges);
      CHECK(counts == count_one_by_one(values, edges));
    }
  }
}

TEST_CASE("counts go into bins and come back, and bins add up", "[kernel][histogram]") {
  const std::vector<float> values = values_of_every_class(20'000);
  for (const BinadeEdges& edges : {binade_edges(fp16), binade_edges(fp8_e4m3), binade_edges(fp32)}) {
    HistogramCounts counts, twice;
    histogram(values, counts, edges);
    histogram(values, twice, edges);
    histogram(values, twice, edges);
    std::vector<std::int64_t> bins(binned::size);
    HistogramCounts found;
    add_to_bins(bins, counts, edges);
    add_bins_to(found, bins, edges);
    CHECK(found == counts);
    add_to_bins(bins, counts, edges);
    found = {};
    add_bins_to(found, bins, edges);
    CHECK(found == twice);
  }
}

TEST_CASE("the edges of known formats", "[kernel][histogram]") {
  CHECK(binade_edges(fp16) ==
        BinadeEdges{.rounds_to_overflow = 0x7FF000, .rounds_to_normal = 0x7FE000});  // 65520, 2^-14 - 2^-25
  CHECK(binade_edges(fp8_e4m3) ==
        BinadeEdges{.rounds_to_overflow = 0x680001, .rounds_to_normal = 0x700000});  // beyond 464
  CHECK(binade_edges(fp32) ==
        BinadeEdges{.rounds_to_overflow = 0x800000, .rounds_to_normal = 0x7FFFFF});  // no FP32 overflows
}

TEST_CASE("counters do not wrap where all numbers fall into one bin", "[kernel][histogram]") {
  const std::size_t size = 1'000'003;
  for (const float x : {1.0f, 0.0f, -0.0f, 1.5f, -0x1.8p-20f, 0x1p-149f, INFINITY, 0x1.fffffep3f}) {
    const std::vector<float> values(size, x);
    for (const Isa isa : available_isas()) {
      const ForcedIsa forced(isa);
      INFO(name_of(isa) << " " << x);
      HistogramCounts counts;
      histogram(values, counts);
      CHECK(counts == count_one_by_one(values));
    }
  }
}

TEST_CASE("histograms add up", "[kernel][histogram]") {
  const std::vector<float> values = values_of_every_class(5000);
  HistogramCounts whole;
  histogram(values, whole);
  HistogramCounts parts;
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}, std::size_t{1234}, values.size()}) {
    const std::size_t next = first == 0 ? 1 : first == 1 ? 1234 : values.size();
    histogram(std::span(values).subspan(first, next - first), parts);
  }
  CHECK(parts == whole);
}

}  // namespace
}  // namespace halfscope::histogram_test
