// Adam's mean square in formats of few bits: numbers of which the rounding of a sum takes or gives a share.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include <halfscope/kernel/cast/round.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/drawn.hpp"

namespace halfscope {
namespace mean_squares {
namespace {

constexpr std::size_t elements = 4096;
constexpr std::array<std::int64_t, 3> lengths{100, 1000, 3000};
constexpr float beta2 = 0.999f;

/// The mean of v = beta2 v + (1 - beta2) g^2 over the elements, g standard normal, after so many steps, with
/// v rounded to the format after each.
std::vector<double> means_of(const Quantizer& format) {
  std::vector<float> v(elements);
  std::vector<double> means;
  for (std::int64_t step = 1; step <= lengths.back(); ++step) {
    const auto site = static_cast<std::uint32_t>(step);
    const std::vector<float> gradients = normal_numbers(elements, site);
    for (std::size_t i = 0; i < elements; ++i)
      v[i] = beta2 * v[i] + (1 - beta2) * (gradients[i] * gradients[i]);
    round(v, v, format, {.seed = 1, .step = site});
    if (step != lengths[means.size()]) continue;
    double sum = 0;
    for (const float value : v) sum += static_cast<double>(value);
    means.push_back(sum / elements);
  }
  return means;
}

std::vector<Cell> row_of(std::string_view format) {
  std::vector<Cell> cells{std::string(format)};
  for (const double mean : means_of(parse_quantizer(format)))
    cells.push_back({fmt::format("{:.3f}", mean), mean});
  return cells;
}

}  // namespace
}  // namespace mean_squares

AnalysisResult find_mean_squares(const AnalysisInput& /*input*/) {
  Table table{{{"format", "format of v"}}, {}};
  for (const std::int64_t length : mean_squares::lengths)
    table.columns.push_back({fmt::format("after_{}", length), fmt::format("{} steps", length)});
  for (const char* format : {"fp32", "bf16", "bf16/stochastic", "fp8_e5m2", "fp8_e5m2/stochastic"})
    table.rows.push_back(mean_squares::row_of(format));
  AnalysisResult finding{.key = "mean_squares", .values = rows_json(table)};
  finding.sections.push_back(
      {.heading = "Adam's mean square of standard normal gradients, beta2 0.999, from 0",
       .table = std::move(table),
       .note = "To nearest, v stays where (1 - beta2) of a usual square is below half its spacing, and only "
               "large squares raise it."});
  return finding;
}

}  // namespace halfscope
