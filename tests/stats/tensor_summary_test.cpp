// The summary of a tensor against sums over its elements, one by one, and against itself taken apart.
#include <halfscope/stats/tensor_summary.hpp>

#include <cmath>

#include <halfscope/core/isa.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/stats/what_if.hpp>

#include "tests/reference/rounding.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::tensor_summary_test {
namespace {

TensorSummary summary_of(std::span<const float> values, const FloatFormat& format) {
  SummaryPass pass(format);
  pass.add(values);
  return pass.summary();
}

/// Finite floats whose squares a double can add up: binades from -40 to 20, with signs, zeros and powers of
/// two among them.
std::vector<float> gradient_like(std::size_t count, std::uint64_t seed) {
  const RandomStream stream{.seed = seed};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = stream.bits(i);
    const std::uint32_t field = 127 - 40 + bits % 61;
    const std::uint32_t fraction = i % 7 == 0 ? 0 : i % 7 == 1 ? 0x7FF800u : bits >> 9;
    values[i] = i % 11 == 0 ? 0.0f : from_bits((bits & sign_bit) | (field << 23) | fraction);
  }
  return values;
}

/// Significands cut to 16 bits, as the summary says it does: its shares must then be those of exact sums.
double cut_square(float x) {
  const double cut = std::abs(static_cast<double>(from_bits(to_bits(x) & 0xFFFFFF00u)));
  return cut * cut;
}

TEST_CASE("the lost energy is that of the elements that rounding flushes", "[summary]") {
  const std::vector<float> values = gradient_like(50'000, 3);
  for (const char* name : {"fp16", "fp16_ftz", "bf16", "fp8_e4m3", "fp8_e5m2", "e3m2f", "e4m1fn_ftz"}) {
    const FloatFormat format = parse_format(name);
    const TensorSummary summary = summary_of(values, format);
    for (int scale_log2 = -30; scale_log2 <= 40; ++scale_log2) {
      double lost = 0, all = 0, lost_uncut = 0, all_uncut = 0;
      for (const float x : values) {
        const bool flushed = reference::round(std::ldexp(double{x}, scale_log2), {format}) == 0;
        lost += flushed ? cut_square(x) : 0;
        all += cut_square(x);
        lost_uncut += flushed ? double{x} * double{x} : 0;
        all_uncut += double{x} * double{x};
      }
      INFO(name << ", scale 2^" << scale_log2);
      CHECK(summary.lost_energy(scale_log2) == Approx(lost / all).epsilon(1e-12));
      CHECK(summary.lost_energy(scale_log2) == Approx(lost_uncut / all_uncut).epsilon(0x1p-14));
    }
  }
}

TEST_CASE("lost energy reaches FP32's subnormals and largest numbers", "[summary]") {
  const std::vector<float> tiny{0x1.8p-148f, 0x1.4p-140f, -0x1p-130f, 0x1.fffffcp-127f};
  const double all = 2.25 * 0x1p-296 + 1.5625 * 0x1p-280 + 0x1p-260 + std::pow(0x1.fffep-127, 2);
  const TensorSummary summary = summary_of(tiny, fp32);
  CHECK(summary.lost_energy(0) == 0);
  CHECK(summary.lost_energy(-20) == Approx((all - std::pow(0x1.fffep-127, 2)) / all));
  CHECK(summary_of(tiny, fp16).lost_energy(0) == 1);
  const std::vector<float> huge{0x1.fffffep127f, 1.0f};
  CHECK(summary_of(huge, bf16).lost_energy(-262) == 1);
  CHECK(summary_of(huge, bf16).lost_energy(-261) < 1e-70);  // the one alone
}

TEST_CASE("the cosine is the one between a tensor and its rounded copy", "[summary]") {
  const std::vector<float> values = gradient_like(70'001, 4);
  for (const char* name : {"bf16", "e8m1", "fp32", "fp16", "e6m2"}) {
    const FloatFormat format = parse_format(name);
    long double xx = 0, xq = 0, qq = 0;
    bool finite = true;
    for (const float x : values) {
      const auto q = static_cast<long double>(reference::round(double{x}, {format}));
      finite = finite && std::isfinite(q);
      xx += static_cast<long double>(x) * x;
      xq += q * x;
      qq += q * q;
    }
    INFO(name);
    const std::optional<double> cosine = summary_of(values, format).cosine();
    REQUIRE(cosine.has_value() == finite);
    if (finite) CHECK(*cosine == Approx(static_cast<double>(xq / std::sqrt(xx * qq))).epsilon(1e-12));
  }
}

TEST_CASE("a direction that is not there is not given", "[summary]") {
  for (const std::vector<float>& values :
       {std::vector<float>{}, {0, -0.0f}, {1e-9f, 0}, {1, 1e6f}, {1, INFINITY}, {1, NAN}}) {
    CHECK_FALSE(summary_of(values, fp16).cosine().has_value());
  }
  CHECK(summary_of(std::vector<float>{1, -2, 3}, fp16).cosine() == 1.0);
  CHECK(summary_of(std::vector<float>{0x1p-20f, 0x1p-40f}, fp16).cosine() == Approx(1));
  CHECK(summary_of(std::vector<float>{}, fp16).lost_energy(0) == 0);
}

TEST_CASE("summaries count as histograms do", "[summary]") {
  for (const FloatFormat& format : formats_under_test()) {
    INFO(to_string(format));
    std::vector<float> values = random_floats(300'000, 6);
    const std::vector<float> edges = boundary_floats(format);
    values.insert(values.begin(), edges.begin(), edges.end());
    ExponentHistogram histogram(format);
    histogram.add(values);
    CHECK(summary_of(values, format).histogram() == histogram);
  }
}

TEST_CASE("sums in the tables of a summary do not wrap", "[summary]") {
  const std::size_t size = 1'300'000;
  for (const float x : {0x1.fffffep3f, 1.0f, 0x1p-149f, 0.0f, INFINITY}) {
    const std::vector<float> values(size, x);
    const TensorSummary summary = summary_of(values, fp16);
    INFO(x);
    ExponentHistogram histogram;
    histogram.add(values);
    CHECK(summary.histogram() == histogram);
    CHECK(summary.lost_energy(0) == (x == 0x1p-149f ? 1 : 0));
  }
  SummaryPass pass(fp16);  // the tail of an array goes to one table
  const float ones[3] = {1, 1, 1};
  for (int i = 0; i < 70'000; ++i) pass.add(ones);
  CHECK(pass.summary().histogram().binade(0) == BinadeCounts{.all = 210'000, .at_power_of_two = 210'000});
}

TEST_CASE("a summary is the same on every instruction set and in any pieces", "[summary]") {
  const std::vector<float> values = gradient_like(static_cast<std::size_t>(2 * summarise_block + 12'345), 5);
  const TensorSummary whole = summary_of(values, bf16);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(name_of(isa));
    SummaryPass pass(bf16);
    std::size_t done = 0, piece = 1;
    while (done < values.size()) {
      const std::size_t count = std::min(piece, values.size() - done);
      pass.add(std::span(values).subspan(done, count));
      done += count;
      piece = piece * 3 % 16'381 + 1;
    }
    CHECK(pass.summary() == whole);
  }
}

TEST_CASE("summaries of the blocks of a tensor merge to that of the whole, to the bit", "[summary]") {
  const std::vector<float> values = gradient_like(static_cast<std::size_t>(3 * summarise_block + 99), 6);
  const TensorSummary whole = summary_of(values, bf16);
  TensorSummary merged(bf16);
  for (std::size_t start = 0; start < values.size(); start += summarise_block) {
    const std::size_t count = std::min(static_cast<std::size_t>(summarise_block), values.size() - start);
    merged.merge(summary_of(std::span(values).subspan(start, count), bf16));
  }
  CHECK(merged == whole);
  TensorSummary parts(bf16);  // elsewhere, all but the sums of the cosine are the same
  parts.merge(summary_of(std::span(values).first(1000), bf16));
  parts.merge(summary_of(std::span(values).subspan(1000), bf16));
  CHECK(parts.histogram() == whole.histogram());
  CHECK(parts.lost_energy(-110) == whole.lost_energy(-110));
  CHECK(*parts.cosine() == Approx(*whole.cosine()).epsilon(1e-12));
  CHECK_FALSE(message_of<InvalidArgument>([&] { parts.merge(TensorSummary(fp16)); }).empty());
}

}  // namespace
}  // namespace halfscope::tensor_summary_test
