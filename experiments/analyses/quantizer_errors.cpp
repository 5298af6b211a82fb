// Errors of block formats on normal numbers, and what is left of them in a mean of many roundings.
#include <fmt/format.h>

#include <array>

#include <halfscope/kernel/block/quantise.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/drawn.hpp"

namespace halfscope {
namespace quantizer_errors {
namespace {

constexpr MatrixShape shape{256, 1024}, averaged_shape{32, 512};
constexpr std::array<int, 4> counts{1, 16, 256, 1024};

constexpr std::array formats{"nvfp4",
                             "nvfp4_16x16",
                             "nvfp4/four_over_six_mse_256",
                             "nvfp4/four_over_six_mae_256",
                             "nvfp4_16x16/four_over_six_mse_256",
                             "nvfp4/stochastic",
                             "mxfp4",
                             "mxfp4/floor",
                             "mxfp4/even",
                             "mxfp4/ceil",
                             "mxfp6_e2m3",
                             "mxfp6_e3m2",
                             "mxfp8_e4m3",
                             "mxfp8_e4m3/floor",
                             "mxfp8_e5m2",
                             "fp8_1x128"};
/// Stochastic roundings, beside one to nearest.
constexpr std::array averaged_formats{"mxfp4/stochastic", "nvfp4/stochastic",
                                      "nvfp4/four_over_six_mse_256/stochastic", "mxfp4/stochastic(4)",
                                      "nvfp4"};

double relative_square(std::span<const float> exact, std::span<const double> found) {
  double error = 0, all = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double x = static_cast<double>(exact[i]);
    error += (found[i] - x) * (found[i] - x);
    all += x * x;
  }
  return error / all;
}

/// Means of as many roundings as `counts` say, each the relative squared error of the mean.
std::vector<double> errors_of_means(const BlockFormat& format, const std::vector<float>& numbers,
                                    const MatrixShape& extents, std::span<const int> wanted) {
  std::vector<double> sums(numbers.size()), errors;
  std::vector<float> rounded(numbers.size());
  for (int n = 1; n <= wanted.back(); ++n) {
    round_blocks(numbers, rounded, extents, format, {.seed = 5, .step = static_cast<std::uint32_t>(n)});
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(rounded[i]);
    if (n != wanted[errors.size()]) continue;
    std::vector<double> means = sums;
    for (double& mean : means) mean /= n;
    errors.push_back(relative_square(numbers, means));
  }
  return errors;
}

Cell thousandths(double error) {
  return {fmt::format("{:.3f}", 1e3 * error), error};
}

std::vector<float> drawn(const MatrixShape& extents) {
  return normal_numbers(static_cast<std::size_t>(extents.rows * extents.columns), 3);
}

Table error_table() {
  Table table{{{"format", "format"}, {"error", "relative squared error, 1e-3"}}, {}};
  const std::vector<float> numbers = drawn(shape);
  for (const char* name : formats) {
    const std::array once{1};
    table.rows.push_back(
        {std::string(name),
         thousandths(errors_of_means(parse_block_format(name), numbers, shape, once).front())});
  }
  return table;
}

Table plateau_table() {
  Table table{{{"format", "format"}}, {}};
  for (const int count : counts)
    table.columns.push_back({fmt::format("of_{}", count), fmt::format("mean of {}", count)});
  const std::vector<float> numbers = drawn(averaged_shape);
  for (const char* name : averaged_formats) {
    std::vector<Cell> cells{std::string(name)};
    for (const double error : errors_of_means(parse_block_format(name), numbers, averaged_shape, counts))
      cells.push_back(thousandths(error));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace
}  // namespace quantizer_errors

AnalysisResult find_quantizer_errors(const AnalysisInput& /*input*/) {
  Table errors = quantizer_errors::error_table(), plateaus = quantizer_errors::plateau_table();
  AnalysisResult finding{.key = "quantizer_errors",
                         .values = {{"errors", rows_json(errors)}, {"means", rows_json(plateaus)}}};
  finding.sections.push_back(
      {.heading = "Relative squared error on normal numbers", .table = std::move(errors)});
  finding.sections.push_back(
      {.heading = "Relative squared error of a mean of roundings, 1e-3",
       .table = std::move(plateaus),
       .note = "An unbiased rounding falls as 1 / N. Its squared bias stays: numbers that clip, or few "
               "random bits."});
  return finding;
}

}  // namespace halfscope
