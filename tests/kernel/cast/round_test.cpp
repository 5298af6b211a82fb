// Array rounding on every instruction set gives the bits of the scalar rounding.
#include <halfscope/kernel/cast/round.hpp>

#include <halfscope/core/isa.hpp>
#include <halfscope/format/round.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::round_test {
namespace {

const RandomStream stream{.seed = 0x123456789ABCDEF, .step = 17, .site = 4};

/// Random bits and boundaries, mixed so that every position in a vector meets all kinds.
std::vector<float> mixed(const FloatFormat& format, std::size_t count) {
  const std::vector<float> boundaries = boundary_floats(format);
  std::vector<float> values = random_floats(count, 3);
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 3 != 0) values[i] = boundaries[(i * 7) % boundaries.size()];
  }
  return values;
}

void check_same(const Quantizer& q, std::span<const float> in, std::span<const float> out) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    const float expected = round(in[i], q, rounding_bits(stream, i));
    if (same_bits(out[i], expected)) continue;
    FAIL_CHECK(to_string(q) << " of " << describe(in[i]) << " at " << i << " of " << in.size() << " is "
                            << describe(out[i]) << ", not " << describe(expected));
    return;
  }
}

TEST_CASE("arrays round as scalars do", "[kernel][round]") {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(name_of(isa));
    std::vector<FloatFormat> formats = formats_under_test();
    std::ranges::copy(unsigned_formats_under_test(), std::back_inserter(formats));
    for (const FloatFormat& format : formats) {
      for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{31}, std::size_t{3001}}) {
        const std::vector<float> in = mixed(format, size);
        std::vector<Quantizer> quantizers = quantizers_of(format);
        for (const int bits : {1, 5, 16})
          quantizers.push_back({format, Rounding::stochastic, Overflow::saturate, bits});
        for (const Quantizer& q : quantizers) {
          std::vector<float> out(size);
          round(in, out, q, stream);
          check_same(q, in, out);
        }
      }
    }
  }
}

TEST_CASE("large odd-sized arrays round as scalars do, in place and unaligned", "[kernel][round]") {
  const std::size_t size = 257 * 259;
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(name_of(isa));
    for (const char* name :
         {"fp16", "bf16", "fp8_e4m3", "fp16/saturate", "fp32", "fp16/stochastic", "fp16/up"}) {
      const Quantizer q = parse_quantizer(name);
      const std::vector<float> in = mixed(q.format, size);
      std::vector<float> out(size + 2, 42.0f);
      std::copy(in.begin(), in.end(), out.begin() + 1);
      const std::span<float> unaligned = std::span(out).subspan(1, size);
      round(unaligned, unaligned, q, stream);
      check_same(q, in, unaligned);
      CHECK((out.front() == 42 && out.back() == 42));
    }
  }
}

TEST_CASE("a part of an array draws its own elements' random bits", "[kernel][round]") {
  const Quantizer q = parse_quantizer("fp8_e4m3/stochastic(8)");
  const std::vector<float> in = mixed(q.format, 5000);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(name_of(isa));
    std::vector<float> whole(in.size()), parts = in;
    round(in, whole, q, stream);
    for (std::size_t first = 0, count = 0; first < in.size(); first += count) {
      count = std::min(in.size() - first, 1 + first % 700);
      const std::span<float> part = std::span(parts).subspan(first, count);
      round_stochastic_part(part, part, q, stream, first);
    }
    CHECK(std::ranges::equal(parts, whole, same_bits));
    for (const int threads : {1, 3}) {
      const Threads in_use(threads);
      std::vector<float> split = in;
      split.resize(40'000, 1.3f);
      std::vector<float> expected(split.size());
      round(split, expected, q, stream);
      round_in_threads(split, q, stream);
      CHECK(std::ranges::equal(split, expected, same_bits));
    }
  }
}

TEST_CASE("every instruction set draws the same random bits", "[kernel][round]") {
  const Quantizer q{bf16, Rounding::stochastic};
  const std::vector<float> in(1000, 1.0f + 0x1p-8f);
  std::vector<float> first(in.size());
  {
    const ForcedIsa forced(Isa::baseline);
    round(in, first, q, stream);
  }
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    std::vector<float> out(in.size());
    round(in, out, q, stream);
    CHECK(out == first);
  }
  CHECK(std::count(first.begin(), first.end(), 1.0f) > 400);
  CHECK(std::count(first.begin(), first.end(), 1.0f) < 600);
}

/// The share of 2^20 elements that go up from 1, each a `fraction` of the way to the next number.
double share_of_ups(const FloatFormat& format, double fraction) {
  const double step = std::ldexp(1.0, -format.mantissa_bits);
  const std::vector<float> in(1 << 20, static_cast<float>(1 + fraction * step));
  std::vector<float> out(in.size());
  round(in, out, {format, Rounding::stochastic}, stream);
  const auto ups = std::count_if(out.begin(), out.end(), [](float x) { return x > 1; });
  CHECK(std::count(out.begin(), out.end(), 1.0f) + ups == std::ssize(in));
  return static_cast<double>(ups) / static_cast<double>(in.size());
}

TEST_CASE("arrays round up as often as the discarded fraction says", "[kernel][round]") {
  for (const FloatFormat& format : {fp16, bf16, fp8_e4m3, parse_format("e5m12")}) {
    for (const double fraction : {0x1p-10, 0.125, 0.5, 0.8125, 1 - 0x1p-10}) {
      const double sigma = std::sqrt(fraction * (1 - fraction) / (1 << 20));
      INFO(to_string(format) << ", fraction " << fraction);
      CHECK(std::abs(share_of_ups(format, fraction) - fraction) < 4.5 * sigma);
    }
    CHECK(share_of_ups(format, 0) == 0);
  }
  // The least fraction of FP16 that there is: 2^-13 of a step, expected 128 times.
  CHECK(std::abs(share_of_ups(fp16, 0x1p-13) * (1 << 20) - 128) < 4.5 * std::sqrt(128.0));
}

TEST_CASE("the random bits of neighbours are independent", "[kernel][round]") {
  // Halves of the way: of any two elements at a distance, a quarter of the pairs goes up together.
  const std::vector<float> in(1 << 20, 1 + 0x1p-11f);
  std::vector<float> out(in.size());
  round(in, out, {fp16, Rounding::stochastic}, stream);
  for (const std::size_t distance : {1u, 2u, 3u, 4u, 7u, 8u, 16u, 64u}) {
    double together = 0;
    for (std::size_t i = distance; i < out.size(); ++i)
      together += (out[i] > 1 && out[i - distance] > 1) ? 1 : 0;
    const double pairs = static_cast<double>(out.size() - distance);
    INFO("distance " << distance);
    CHECK(std::abs(together / pairs - 0.25) < 4.5 * std::sqrt(0.25 * 0.75 / pairs));
  }
}

TEST_CASE("sizes that differ are refused", "[kernel][round]") {
  const std::vector<float> in(3);
  std::vector<float> out(4);
  check_says(message_of<InvalidArgument>([&] { round(in, out, {fp16}); }), {"3", "4"});
}

}  // namespace
}  // namespace halfscope::round_test
