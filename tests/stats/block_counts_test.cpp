// Counts per block: against a count one by one, and shares of normal numbers against closed forms.
#include <halfscope/stats/block_counts.hpp>

#include <halfscope/arithmetic/normal.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::block_counts_test {
namespace {

std::vector<float> normal_floats(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; i += 2) {
    const auto pair = normal_pair({.seed = seed}, i);
    values[i] = pair[0];
    if (i + 1 < count) values[i + 1] = pair[1];
  }
  return values;
}

TEST_CASE("a block's elements are counted by what becomes of them", "[block]") {
  // floor: amax 7 has the scale 1. E2M1 ends at 6, rounds to it below 7, has 0.5 as its smallest number.
  std::vector<float> values{7, 6.5f, -6, 1, 0.5f, 0.26f, 0.25f, -0.1f, 0, -0.0f};
  values.resize(96);
  values[40] = NAN;
  const BlockCounts counts = count_blocks(values, {1, 96}, parse_block_format("mxfp4/floor"));
  CHECK(counts.elements == 96);
  CHECK(counts.zeros == 96 - 9);
  CHECK(counts.nonfinite == 1);
  CHECK(counts.flushed == 2);
  CHECK(counts.flushed_by_scale == 0);
  CHECK(counts.subnormal == 2);
  CHECK(counts.clipped == 2);
  CHECK(counts.overflow == 1);
  CHECK(counts.blocks == 3);
  CHECK(counts.zero_blocks == 1);
  CHECK(counts.nonfinite_blocks == 1);
  CHECK((counts.clipped_blocks == 1 && counts.overflow_blocks == 1));
  CHECK((counts.nan_scales == 1 && counts.least_scales == 1 && counts.largest_scales == 0));
  CHECK((counts.scale_codes[127] == 1 && counts.scale_codes[255] == 1 && counts.scale_codes[0] == 1));
  const auto exponent = [&](int e) {
    return counts.exponents[static_cast<std::size_t>(e - BlockCounts::first_exponent)];
  };
  CHECK(
      (exponent(2) == 3 && exponent(0) == 1 && exponent(-1) == 1 && exponent(-2) == 2 && exponent(-4) == 1));
  const double signal = 49 + 42.25 + 36 + 1 + 0.25 + 0.0676 + 0.0625 + 0.01;
  const double error = 1 + 0.25 + 0.0576 + 0.0625 + 0.01;
  CHECK(counts.relative_squared_error() == Approx(error / signal).epsilon(2e-4));
  CHECK(counts.signal_to_noise_db() == Approx(10 * std::log10(signal / error)).epsilon(1e-3));
}

TEST_CASE("a scale that flushes is the cause, though the codes are the largest", "[block]") {
  std::vector<float> values(64);
  values[0] = 2688;
  values[16] = 1e-3f;
  values[17] = -1e-4f;
  const BlockFormat format = parse_block_format("nvfp4");
  const BlockCounts counts = count_blocks(values, {1, 64}, format);
  CHECK((counts.flushed == 2 && counts.flushed_by_scale == 2 && counts.clipped == 0));
  CHECK((counts.zero_scales == 3 && counts.zero_blocks == 2 && counts.largest_scales == 1));
  CHECK(quantise_blocks(values, {1, 64}, format).elements[16] == 7);
}

TEST_CASE("a block is at risk if it overflows, is not finite, or loses its scale", "[block]") {
  std::vector<float> values(160, 1);
  values[0] = 6.5f;       // clips, and is nearest to 6
  values[32] = 7;         // goes beyond
  values[64] = INFINITY;  // takes the block with it
  for (std::size_t i = 96; i < 128; ++i) values[i] = 0;
  const BlockCounts mx = count_blocks(values, {1, 160}, parse_block_format("mxfp4/floor"));
  CHECK((mx.clipped_blocks == 2 && mx.overflow_blocks == 1 && mx.blocks_at_risk == 2));
  CHECK((mx.nonfinite == 1 && mx.lost == 31));
  // 0 / 0 in the block of zeros.
  const BlockFormat deepseek = parse_block_format("block(fp8_e4m3, 1x32, fp32/deepseek)");
  values[64] = 1;
  const BlockCounts fp32 = count_blocks(values, {1, 160}, deepseek);
  CHECK((fp32.blocks_at_risk == 1 && fp32.lost == 32 && fp32.zeros == 32));
  // Scales that underflow, but for those of 1e6 and of 7.
  values[0] = 1e6f;
  const BlockCounts nvfp4 = count_blocks(values, {1, 160}, parse_block_format("nvfp4"));
  CHECK((nvfp4.flushed_by_scale > 0 && nvfp4.lost == 0));
  CHECK(nvfp4.blocks_at_risk == 10 - 2 - nvfp4.zero_blocks);
}

TEST_CASE("counts add up, merge, and do not depend on threads", "[block]") {
  std::vector<float> values = normal_floats(200 * 512, 3);
  for (std::size_t i = 0; i < values.size(); i += 7) values[i] *= 1e-6f;
  for (const NamedBlockFormat& entry : block_formats) {
    BlockCounts expected;
    for (const int threads : {1, 3}) {
      const Threads in_use(threads);
      std::vector<float> rounded(values.size()), direct(values.size());
      const BlockCounts counts = count_blocks(values, {200, 512}, entry.format, {}, rounded);
      if (threads == 1) expected = counts;
      round_blocks(values, direct, {200, 512}, entry.format);
      INFO(entry.name << ", " << threads);
      CHECK(counts == expected);
      CHECK(std::ranges::equal(rounded, direct, same_bits));
    }
    std::int64_t scales = 0;
    for (const std::int64_t count : expected.scale_codes) scales += count;
    CHECK((scales == expected.blocks && expected.elements == std::ssize(values)));
    if (entry.format.tensor_scale == TensorScale::fp32 || entry.format.block.rows > 1) continue;
    BlockCounts merged = count_blocks(std::span(values).first(64 * 512), {64, 512}, entry.format);
    merged.merge(count_blocks(std::span(values).subspan(64 * 512), {136, 512}, entry.format));
    CHECK(merged == expected);
  }
}

TEST_CASE("a matrix and a result of other sizes are refused", "[block]") {
  std::vector<float> values(10), rounded(9);
  check_says(message_of<InvalidArgument>([&] {
               (void)count_blocks(values, {1, 10}, {}, {}, rounded);
             }),
             {"10", "9"});
}

// Closed forms for standard normal numbers. G(a) is the probability of |x| <= a.

double gauss(double a) {
  return std::erf(a / std::sqrt(2.0));
}

/// Shares under `floor`, per block or per element, of blocks of n.
struct Shares {
  double blocks = 0, elements = 0, flushed = 0;
};

/// `edge` over the power of two of the largest number is where clipping, or overflow, begins.
Shares floor_shares(const FloatFormat& element, double edge, int n) {
  const double t = edge / std::exp2(element.max_exponent());
  const double half_smallest = std::ldexp(1.0, element.lowest_exponent() - 1);
  Shares shares;
  for (int k = -60; k < 6; ++k) {
    const double upper = gauss(std::exp2(k + 1)), lower = gauss(std::exp2(k)),
                 at_edge = gauss(t * std::exp2(k));
    shares.blocks += std::pow(upper, n) - std::pow(at_edge, n);
    shares.elements += (upper - at_edge) * std::pow(upper, n - 1);
    shares.flushed += gauss(half_smallest * std::exp2(k - element.max_exponent())) *
                      (std::pow(upper, n - 1) - std::pow(lower, n - 1));
  }
  return shares;
}

double flushed_by_rceil(const FloatFormat& element, int n) {
  const double largest = from_bits(element.max_finite_bits());
  const double half_smallest = std::ldexp(1.0, element.lowest_exponent() - 1);
  double share = 0;
  for (int j = -60; j < 6; ++j) {
    share += gauss(half_smallest * std::exp2(j)) * (std::pow(gauss(largest * std::exp2(j)), n - 1) -
                                                    std::pow(gauss(largest * std::exp2(j - 1)), n - 1));
  }
  return share;
}

/// Shares of clipped blocks and of flushed elements where the scale doubles once amax reaches `step` times a
/// power of two, at scales under which numbers from `edge` times that power on clip.
Shares stepped_shares(const FloatFormat& element, double step, double edge, int n) {
  const double half_smallest = std::ldexp(1.0, element.lowest_exponent() - 1);
  Shares shares;
  for (int k = -60; k < 6; ++k) {
    const double upper = gauss(step * std::exp2(k)), lower = gauss(step * std::exp2(k - 1)),
                 at_edge = gauss(edge * std::exp2(k));
    shares.blocks += std::pow(upper, n) - std::pow(at_edge, n);
    shares.flushed += gauss(half_smallest * std::exp2(k - element.max_exponent())) *
                      (std::pow(upper, n - 1) - std::pow(lower, n - 1));
  }
  return shares;
}

double edge_of(const FloatFormat& element) {
  return from_bits(element.max_finite_bits()) / std::exp2(element.max_exponent());
}
/// `even`: the scale doubles where amax rounds up to the next power of two in the element's bits.
Shares even_shares(const FloatFormat& element, int n) {
  return stepped_shares(element, 2 - std::exp2(-element.mantissa_bits - 1), edge_of(element), n);
}
/// `nearest`: the scale doubles where amax is half again the largest number at it.
Shares nearest_shares(const FloatFormat& element, int n) {
  return stepped_shares(element, 1.5 * edge_of(element), edge_of(element), n);
}

/// Elements of a block depend on each other at most wholly.
bool is_share(std::int64_t count, std::int64_t of, double share, int dependent) {
  const double sigma = std::sqrt(share * (1 - share) * dependent / static_cast<double>(of));
  return std::abs(static_cast<double>(count) / static_cast<double>(of) - share) < 5 * sigma;
}

TEST_CASE("the closed forms are the published shares", "[block][shares]") {
  CHECK(floor_shares(fp4_e2m1, 6, 16).blocks == Approx(.4174).epsilon(1e-3));
  CHECK(floor_shares(fp4_e2m1, 6, 32).blocks == Approx(.2960).epsilon(1e-3));
  CHECK(floor_shares(fp8_e4m3, 448, 32).blocks == Approx(.1690).epsilon(1e-3));
  CHECK(floor_shares(fp8_e4m3, 464, 32).blocks == Approx(.1342).epsilon(1e-3));
  CHECK(floor_shares(fp6_e2m3, 7.5, 32).blocks == Approx(.0946).epsilon(1e-3));
  CHECK(floor_shares(fp4_e2m1, 6, 32).elements == Approx(.02343).epsilon(1e-3));
  CHECK(floor_shares(fp4_e2m1, 6, 32).flushed == Approx(.08795).epsilon(1e-3));
  CHECK(floor_shares(fp6_e3m2, 28, 16).flushed == Approx(.002342).epsilon(1e-3));
  CHECK(flushed_by_rceil(fp4_e2m1, 32) == Approx(.1068).epsilon(1e-3));
  CHECK(flushed_by_rceil(fp6_e2m3, 16) == Approx(.02012).epsilon(1e-3));
  CHECK(even_shares(fp4_e2m1, 16).blocks == Approx(.1974).epsilon(1e-3));
  CHECK(even_shares(fp8_e4m3, 32).blocks == Approx(.1192).epsilon(1e-3));
  CHECK(even_shares(fp4_e2m1, 16).flushed == Approx(.08596).epsilon(1e-3));
  CHECK(even_shares(fp4_e2m1, 32).flushed == Approx(.09715).epsilon(1e-3));
  CHECK(nearest_shares(fp4_e2m1, 16).blocks == Approx(.6223).epsilon(1e-3));
  CHECK(nearest_shares(fp4_e2m1, 32).blocks == Approx(.5255).epsilon(1e-3));
  CHECK(nearest_shares(fp8_e4m3, 16).blocks == Approx(.6489).epsilon(1e-3));
  CHECK(nearest_shares(fp8_e4m3, 32).blocks == Approx(.7038).epsilon(1e-3));
}

TEST_CASE("shares of ten million normal numbers are those of the closed forms", "[block][shares]") {
  constexpr std::int64_t rows = 1000, columns = 10'240;
  const std::vector<float> values = normal_floats(rows * columns, 2026);
  struct Case {
    FloatFormat element;
    double midpoint;
  };
  for (const auto& [element, midpoint] :
       {Case{fp4_e2m1, 7}, {fp8_e4m3, 464}, {fp6_e2m3, 7.75}, {fp6_e3m2, 30}}) {
    for (const int n : {16, 32}) {
      const auto counts_of = [&, element = element](const char* rule) {
        BlockFormat format{.element = {.format = element, .overflow = Overflow::saturate}, .block = {1, n}};
        format.rule = &find_scale_rule(rule, ScaleFormat::e8m0);
        return count_blocks(values, {rows, columns}, format);
      };
      INFO(to_string(element) << " in blocks of " << n);
      const BlockCounts floor = counts_of("floor"), rceil = counts_of("rceil"), even = counts_of("even"),
                        nearest = counts_of("nearest");
      const Shares clipped = floor_shares(element, from_bits(element.max_finite_bits()), n);
      CHECK(is_share(floor.clipped_blocks, floor.blocks, clipped.blocks, 1));
      CHECK(is_share(floor.overflow_blocks, floor.blocks, floor_shares(element, midpoint, n).blocks, 1));
      CHECK(is_share(floor.clipped, floor.elements, clipped.elements, n));
      CHECK(is_share(floor.flushed, floor.elements, clipped.flushed, n));
      CHECK(is_share(rceil.flushed, rceil.elements, flushed_by_rceil(element, n), n));
      CHECK(rceil.clipped == 0);
      CHECK(is_share(even.clipped_blocks, even.blocks, even_shares(element, n).blocks, 1));
      CHECK(is_share(even.flushed, even.elements, even_shares(element, n).flushed, n));
      CHECK(is_share(nearest.clipped_blocks, nearest.blocks, nearest_shares(element, n).blocks, 1));
      CHECK(is_share(nearest.flushed, nearest.elements, nearest_shares(element, n).flushed, n));
    }
  }
}

TEST_CASE("relative errors of normal numbers are the published ones", "[block][shares]") {
  constexpr std::int64_t side = 2048;
  const std::vector<float> values = normal_floats(side * side, 5);
  struct Published {
    const char* format;
    double thousandths;
  };
  for (const auto& [format, thousandths] : {Published{"nvfp4", 9.04},
                                            {"nvfp4_16x16", 12.41},
                                            {"nvfp4/four_over_six_mse_256", 7.56},
                                            {"nvfp4/four_over_six_mse_448", 7.56},
                                            {"nvfp4/four_over_six_mae_256", 7.80},
                                            {"nvfp4_16x16/four_over_six_mse_256", 12.39},
                                            {"mxfp8_e4m3/floor", .863},
                                            {"mxfp8_e4m3/ceil", .704},
                                            {"mxfp8_e4m3/even", .763},
                                            {"mxfp8_e4m3", .704},
                                            {"mxfp8_e5m2/floor", 2.914},
                                            {"mxfp8_e5m2", 2.793},
                                            {"mxfp6_e3m2/ceil", 2.794},
                                            {"mxfp6_e2m3/floor", .805},
                                            {"mxfp6_e2m3/ceil", 1.327},
                                            {"mxfp6_e2m3", .802},
                                            {"mxfp4/floor", 13.23},
                                            {"mxfp4/ceil", 20.77},
                                            {"mxfp4/even", 12.51},
                                            {"mxfp4", 13.33},
                                            {"fp8_1x128", .661},
                                            {"fp8_1x128/deepgemm_ue8m0", .704}}) {
    const BlockCounts counts = count_blocks(values, {side, side}, parse_block_format(format));
    INFO(format << ": " << counts.relative_squared_error() * 1e3);
    CHECK(counts.relative_squared_error() * 1e3 == Approx(thousandths).epsilon(4e-3));
  }
}

/// Relative squared error, in thousandths, of the mean of `count` stochastic roundings of 256 x 1024 normal
/// numbers.
double error_of_mean(const char* name, int count) {
  const MatrixShape shape{256, 1024};
  const std::vector<float> values = normal_floats(256 * 1024, 6);
  const BlockFormat format = parse_block_format(name);
  std::vector<float> rounded(values.size());
  std::vector<double> sum(values.size());
  for (int i = 0; i < count; ++i) {
    round_blocks(values, rounded, shape, format, {.seed = 100 + static_cast<std::uint64_t>(i)});
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += double{rounded[k]};
  }
  double signal = 0, error = 0;
  for (std::size_t k = 0; k < sum.size(); ++k) {
    signal += double{values[k]} * values[k];
    error += std::pow(sum[k] / count - values[k], 2);
  }
  return error / signal * 1e3;
}

TEST_CASE("means of stochastic roundings end at the published plateaus", "[block][shares]") {
  struct Published {
    int count;
    double thousandths;
  };
  // NVFP4's scales round down too, so that up to 1/16 of the largest numbers is clipped at every draw.
  for (const auto& [count, thousandths] : {Published{1, 18.9}, {4, 4.79}, {16, 1.28}, {64, .393}}) {
    const double error = error_of_mean("nvfp4/stochastic", count);
    INFO(count << ": " << error);
    CHECK(error == Approx(thousandths).epsilon(2e-2));
  }
  // Nothing clips under rceil: the error is the variance over the count.
  const double one = error_of_mean("mxfp4/stochastic", 1), many = error_of_mean("mxfp4/stochastic", 64);
  INFO(one << ", " << many);
  CHECK(many == Approx(one / 64).epsilon(1e-2));
  // Two random bits see a quarter of a step f as its lower end: 1/48 is the mean square of what they miss,
  // (5/32) / 64 the variance of the mean, beside the 1/6 of one draw with all bits. Normal numbers' f are
  // nearly uniform.
  const double few_bits = error_of_mean("mxfp4/stochastic(2)", 64);
  INFO(few_bits);
  CHECK(few_bits == Approx(one * 6 * (1.0 / 48 + 5.0 / 32 / 64)).epsilon(0.1));
}

}  // namespace
}  // namespace halfscope::block_counts_test
