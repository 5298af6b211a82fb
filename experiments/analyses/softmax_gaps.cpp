// Logit gaps from which a softmax leaves the right class no gradient.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include <halfscope/format/round.hpp>

#include "experiments/analyses/analyses.hpp"

namespace halfscope {
namespace softmax_gaps {
namespace {

enum class Rounds : std::uint8_t { every_operation, quotient_alone };

/// The gradient p - 1 of the right class, a gap above one other class.
double gradient_at(double gap, const Quantizer& format, Rounds rounds) {
  const auto to = [&](double x) { return static_cast<double>(round(static_cast<float>(x), format)); };
  if (rounds == Rounds::quotient_alone) return to(1 / (1 + std::exp(-gap))) - 1;
  const double other = to(std::exp(to(-gap)));
  return to(1 / to(1 + other)) - 1;
}

/// The smallest gap without a gradient, by bisection: the gradient shrinks as the gap grows.
double gap_without_gradient(const Quantizer& format, Rounds rounds) {
  double low = 0, high = 64;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (gradient_at(middle, format, rounds) == 0 ? high : low) = middle;
  }
  return high;
}

}  // namespace
}  // namespace softmax_gaps

AnalysisResult find_softmax_gaps(const AnalysisInput& /*input*/) {
  using softmax_gaps::Rounds;
  Table table{{{"format", "format"},
               {"stepwise", "every operation"},
               {"p_ln_2", "p ln 2"},
               {"fused", "the quotient alone"},
               {"p_plus_1_ln_2", "(p + 1) ln 2"}},
              {}};
  for (const char* name : {"fp32", "fp16", "bf16"}) {
    const Quantizer format = parse_quantizer(name);
    const double digits = format.format.mantissa_bits + 1;
    const auto gap = [](double value) { return Cell{fmt::format("{:.2f}", value), value}; };
    table.rows.push_back({name, gap(softmax_gaps::gap_without_gradient(format, Rounds::every_operation)),
                          gap(digits * std::log(2.0)),
                          gap(softmax_gaps::gap_without_gradient(format, Rounds::quotient_alone)),
                          gap((digits + 1) * std::log(2.0))});
  }
  AnalysisResult finding{.key = "softmax_gaps", .values = rows_json(table)};
  finding.sections.push_back(
      {.heading = "The gap between two logits from which p rounds to 1, and p - 1 is 0",
       .table = std::move(table)});
  return finding;
}

}  // namespace halfscope
