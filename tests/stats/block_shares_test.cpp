// Shares and errors of block formats on normal numbers, against closed forms and published figures.
#include <tuple>

#include <halfscope/stats/block_counts.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::block_shares_test {
namespace {

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
  struct Published {
    FloatFormat element;
    double midpoint;
    int n;
    double clipped_blocks, overflow_blocks, clipped, flushed, flushed_by_rceil;  // in per cent
  };
  for (const auto& published : {Published{fp4_e2m1, 7, 16, 41.74, 22.00, 4.690, 7.480, 9.759},
                                {fp4_e2m1, 7, 32, 29.60, 16.90, 2.343, 8.795, 10.68},
                                {fp8_e4m3, 464, 16, 22.00, 16.62, 1.783, 4.6e-4, 5.3e-4},
                                {fp8_e4m3, 464, 32, 16.90, 13.42, .857, 5.4e-4, 5.9e-4},
                                {fp6_e2m3, 7.75, 16, 11.11, 5.54, .782, 1.873, 2.012},
                                {fp6_e2m3, 7.75, 32, 9.46, 4.98, .372, 2.204, 2.328},
                                {fp6_e3m2, 30, 16, 22.00, 11.11, 1.783, .2342, .2693},
                                {fp6_e3m2, 30, 32, 16.90, 9.46, .857, .2755, .3044}}) {
    const auto& [element, midpoint, n, clipped_blocks, overflow_blocks, clipped, flushed, by_rceil] =
        published;
    INFO(to_string(element) << " in blocks of " << n);
    const Shares shares = floor_shares(element, from_bits(element.max_finite_bits()), n);
    // Half a unit of the last printed digit is at most 1.1 % of the numbers printed with two, 0.11 % of
    // others.
    const auto is_printed = [](double percent) {
      return Approx(percent).epsilon(percent < 1e-3 ? 1.1e-2 : 1.1e-3);
    };
    CHECK(100 * shares.blocks == is_printed(clipped_blocks));
    CHECK(100 * floor_shares(element, midpoint, n).blocks == is_printed(overflow_blocks));
    CHECK(100 * shares.elements == is_printed(clipped));
    CHECK(100 * shares.flushed == is_printed(flushed));
    CHECK(100 * flushed_by_rceil(element, n) == is_printed(by_rceil));
  }
  CHECK(even_shares(fp4_e2m1, 16).blocks == Approx(.1974).epsilon(1e-3));
  CHECK(even_shares(fp4_e2m1, 32).blocks == Approx(.1270).epsilon(1e-3));
  CHECK(even_shares(fp8_e4m3, 16).blocks == Approx(.1646).epsilon(1e-3));
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

TEST_CASE("shares flushed by a scale that is not rounded are the published ones", "[block][shares]") {
  constexpr std::int64_t rows = 1024, columns = 10'240;
  const std::vector<float> values = normal_floats(rows * columns, 2027);
  for (const auto& [format, share, n] : {std::tuple{"block(fp4_e2m1, 1x16, fp32/te)", .06809, 16},
                                         {"block(fp4_e2m1, 1x32, fp32/te)", .07750, 32},
                                         {"block(fp4_e2m1, 16x16, fp32/te)", .1009, 256}}) {
    INFO(format);
    const BlockCounts counts = count_blocks(values, {rows, columns}, parse_block_format(format));
    CHECK(is_share(counts.flushed, counts.elements, share, n));
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
                                            {"mxfp8_e5m2/ceil", 2.793},
                                            {"mxfp8_e5m2/even", 2.793},
                                            {"mxfp8_e5m2", 2.793},
                                            {"mxfp6_e3m2/floor", 2.914},
                                            {"mxfp6_e3m2/ceil", 2.794},
                                            {"mxfp6_e3m2/even", 2.793},
                                            {"mxfp6_e3m2", 2.793},
                                            {"mxfp6_e2m3/floor", .805},
                                            {"mxfp6_e2m3/ceil", 1.327},
                                            {"mxfp6_e2m3/even", .796},
                                            {"mxfp6_e2m3", .802},
                                            {"mxfp4/floor", 13.23},
                                            {"mxfp4/ceil", 20.77},
                                            {"mxfp4/even", 12.51},
                                            {"mxfp4", 13.33},
                                            {"block(fp4_e2m1, 1x16, e8m0/floor)", 13.86},
                                            {"block(fp4_e2m1, 1x16, e8m0/even)", 12.12},
                                            {"block(fp4_e2m1, 1x16, e8m0/rceil)", 12.73},
                                            {"fp8_1x128", .661},
                                            {"fp8_1x128/deepgemm_ue8m0", .704}}) {
    const BlockCounts counts = count_blocks(values, {side, side}, parse_block_format(format));
    INFO(format << ": " << counts.relative_squared_error() * 1e3);
    // Three standard deviations of two draws' difference, which is widest under `floor`: its tails clip.
    CHECK(counts.relative_squared_error() * 1e3 == Approx(thousandths).epsilon(6e-3));
  }
  // One scale for all numbers: the error depends on the place of the one largest number in its binade.
  for (const auto& [format, thousandths] : {Published{"block(fp8_e4m3, 2048x2048, fp32/te)", .70},
                                            {"block(fp8_e5m2, 2048x2048, fp32/te)", 2.77}}) {
    const BlockCounts counts = count_blocks(values, {side, side}, parse_block_format(format));
    INFO(format << ": " << counts.relative_squared_error() * 1e3);
    CHECK(counts.relative_squared_error() * 1e3 == Approx(thousandths).epsilon(1.1e-2));
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

TEST_CASE("no scale that leaves room for its own rounding clips", "[block][shares]") {
  const std::vector<float> values = normal_floats(256 * 1024, 7);
  CHECK(count_blocks(values, {256, 1024}, parse_block_format("nvfp4")).clipped > 1000);
  CHECK(count_blocks(values, {256, 1024}, parse_block_format("nvfp4/te_head_room")).clipped == 0);
}

TEST_CASE("means of stochastic roundings end at the published plateaus", "[block][shares]") {
  struct Published {
    const char* format;
    int count;
    double thousandths;
  };
  // NVFP4's scales round down too, so that up to 1/16 of the largest numbers is clipped at every draw. With
  // room for the scale's rounding nothing is, and what is left is the variance; four random bits add their
  // bias.
  for (const auto& [format, count, thousandths] :
       {Published{"nvfp4/stochastic", 1, 18.9},
        {"nvfp4/stochastic", 4, 4.79},
        {"nvfp4/stochastic", 16, 1.28},
        {"nvfp4/stochastic", 64, .393},
        {"nvfp4/te_head_room/stochastic", 1, 23.6},
        {"nvfp4/te_head_room/stochastic", 4, 5.89},
        {"nvfp4/te_head_room/stochastic", 16, 1.47},
        {"nvfp4/te_head_room/stochastic", 64, .365},
        {"nvfp4/te_head_room/stochastic(4)", 256, .091 + .212 - .023}}) {
    const double error = error_of_mean(format, count);
    INFO(format << ", " << count << ": " << error);
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
}  // namespace halfscope::block_shares_test
