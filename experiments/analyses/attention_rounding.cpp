// Attention's weights in E4M3, and the bias of a tie that always has the same neighbour.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include <halfscope/format/formats.hpp>
#include <halfscope/format/round.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/drawn.hpp"

namespace halfscope {
namespace attention_rounding {
namespace {

constexpr std::size_t scores = 1 << 20;
/// The largest score, of scores that are standard normal.
constexpr double distance = 8;
constexpr std::array<double, 3> factors{1, 16, 256};

/// The share of exp(s - distance) times `factor` that E4M3 makes 0.
double flushed_share(double factor) {
  std::size_t flushed = 0;
  for (const float s : normal_numbers(scores, 4)) {
    const double p = std::exp(static_cast<double>(s) - distance);
    if (round(static_cast<float>(factor * p), {.format = fp8_e4m3}) == 0) ++flushed;
  }
  return static_cast<double>(flushed) / scores;
}

/// E4M3 flushes p if factor p <= 2^-10, half its smallest number.
double predicted_share(double factor) {
  return normal_share_below(distance - 10 * std::log(2.0) - std::log(factor));
}

/// Mean error, in units of the last place, of weight (a + b) + rest rounded to BF16, a and b numbers of BF16
/// uniform in [1, 2): at a weight of 1 every second sum is a tie.
double mean_error(float weight, float rest) {
  constexpr std::size_t count = 1 << 16;
  const Quantizer format{.format = bf16};
  const RandomStream stream{.site = 5};
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float a = round(1 + stream.uniform(2 * i), format),
                b = round(1 + stream.uniform(2 * i + 1), format);
    const double exact = static_cast<double>(weight) * (static_cast<double>(a) + static_cast<double>(b)) +
                         static_cast<double>(rest);
    const double rounded = static_cast<double>(round(static_cast<float>(exact), format));
    const double ulp = std::ldexp(1.0, std::ilogb(exact) - bf16.mantissa_bits);
    sum += (rounded - exact) / ulp;
  }
  return sum / count;
}

Table share_table() {
  Table table{{{"scale", "scale of P"}, {"flushed", "flushed to 0"}, {"closed_form", "closed form"}}, {}};
  for (const double factor : factors) {
    const double found = flushed_share(factor), predicted = predicted_share(factor);
    table.rows.push_back({{fmt::format("{:.0f}", factor), factor},
                          {fmt::format("{:.2g}", found), found},
                          {fmt::format("{:.2g}", predicted), predicted}});
  }
  return table;
}

Table tie_table() {
  Table table{{{"case", "two keys with the same largest score"}, {"error", "mean error, ulp"}}, {}};
  const auto add = [&](const char* name, double error) {
    table.rows.push_back({name, {fmt::format("{:+.4f}", error), error}});
  };
  add("both weights 1, a small rest below 0", mean_error(1, -0x1p-12f));
  add("both weights 1, no rest", mean_error(1, 0));
  add("both weights 0.9375, a small rest below 0", mean_error(0.9375f, -0x1p-12f));
  return table;
}

}  // namespace
}  // namespace attention_rounding

AnalysisResult find_attention_rounding(const AnalysisInput& /*input*/) {
  Table shares = attention_rounding::share_table(), ties = attention_rounding::tie_table();
  AnalysisResult finding{.key = "attention_rounding",
                         .values = {{"flushed", rows_json(shares)}, {"ties", rows_json(ties)}}};
  finding.sections.push_back(
      {.heading = "Weights exp(s - max) of attention in E4M3: s standard normal, the maximum at 8",
       .table = std::move(shares)});
  finding.sections.push_back(
      {.heading = "P V rounded to BF16, values uniform in [1, 2)",
       .table = std::move(ties),
       .note = "A weight that rounds to exactly 1 makes every second sum a tie, which a rest of one sign "
               "breaks one way."});
  return finding;
}

}  // namespace halfscope
