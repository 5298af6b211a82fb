// Adds up statistics as batch norm does, of independent normal numbers.
#include "experiments/analyses/norm_errors.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <halfscope/kernel/reduce/reduce.hpp>

#include "experiments/analyses/drawn.hpp"
#include "experiments/analyses/sum_errors.hpp"
#include "experiments/analyses/sums_table.hpp"

namespace halfscope {
namespace norm_errors {
namespace {

constexpr std::int64_t most_numbers = std::int64_t{1} << 21, most_norms = 64;
constexpr std::size_t sampled = 4096;
/// In standard deviations.
constexpr std::array<float, 4> means{0, 0.3f, 1, 10};
constexpr std::array models{"fp16_sequential", "bf16_sequential"};
/// A closed form is right where its variance is within this factor of the one that is measured.
constexpr double allowed_factor = 1.25;

/// Numbers of several norms of one length.
struct Numbers {
  std::int64_t length = 0, norms = 0;
  std::vector<float> values{};  // (length, norms)
};

struct Row {
  float mean = 0;
  std::string model;
  std::int64_t count = 0;
  NormError measured{}, expected{};
};

Numbers draw(std::int64_t length, float mean) {
  Numbers drawn{.length = length, .norms = std::min(most_norms, most_numbers / length)};
  const auto site = static_cast<std::uint32_t>(std::ilogb(length));
  drawn.values = normal_numbers(static_cast<std::size_t>(length * drawn.norms), 128 + site);
  for (float& x : drawn.values) x += mean;
  return drawn;
}

/// Beside FP64's statistics; means over the norms.
NormError measure(const Numbers& drawn, const AccumulateModel& model) {
  const auto columns = static_cast<std::size_t>(drawn.norms);
  const auto rows = static_cast<double>(drawn.length), norms = static_cast<double>(drawn.norms);
  std::vector<float> computed(columns), variances(columns);
  ColumnTerms terms{.x = drawn.values.data(), .rows = drawn.length, .columns = drawn.norms};
  column_sums(terms, model, computed);
  for (float& mean : computed) mean /= static_cast<float>(drawn.length);
  terms.term = Term::squared_deviation;
  terms.center = computed.data();
  column_sums(terms, model, variances);
  NormError error{.variance = 0};
  for (std::size_t c = 0; c < columns; ++c) {
    double sum = 0, squares = 0;
    for (std::size_t i = c; i < drawn.values.size(); i += columns) sum += double{drawn.values[i]};
    for (std::size_t i = c; i < drawn.values.size(); i += columns)
      squares += std::pow(double{drawn.values[i]} - sum / rows, 2);
    error.variance += double{variances[c]} / squares / norms;
    error.shift += (sum / rows - double{computed[c]}) / std::sqrt(squares / rows) / norms;
  }
  return error;
}

std::vector<Row> measure_all(std::span<const std::int64_t> lengths) {
  std::vector<Row> rows;
  for (const float mean : means)
    for (const std::int64_t length : lengths) {
      const Numbers drawn = draw(length, mean);
      const std::span sample = std::span(drawn.values).first(std::min(sampled, drawn.values.size()));
      for (const char* name : models) {
        const AccumulateModel model = parse_accumulate_model(name);
        rows.push_back(
            {mean, name, length, measure(drawn, model), expected_norm_error(sample, length, model)});
      }
    }
  return rows;
}

bool agrees(const Row& row) {
  if (!std::isfinite(row.measured.variance)) return !std::isfinite(row.expected.variance);
  const double factor = row.measured.variance / row.expected.variance;
  return factor <= allowed_factor && factor >= 1 / allowed_factor;
}

std::string text(double variance) {
  return std::isfinite(variance) ? fmt::format("{:.2g}", variance) : "inf";
}

Section section(const std::vector<Row>& rows) {
  std::vector<PivotCell> cells;
  for (const Row& row : rows) {
    cells.push_back({"norm",
                     {row.model, fmt::format("{:g}", row.mean)},
                     fmt::format("2^{}", std::ilogb(row.count)),
                     fmt::format("{} / {}", text(row.measured.variance), text(row.expected.variance))});
  }
  Section made = pivoted(cells, {"mean"}).front();
  made.heading =
      "Variance of a norm over the exact one, measured / closed form, by length; mean of its numbers in "
      "standard deviations";
  return made;
}

Json json_of(const Row& row) {
  const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(); };
  return {{"mean", row.mean},
          {"model", row.model},
          {"count", row.count},
          {"variance", number(row.measured.variance)},
          {"shift", number(row.measured.shift)},
          {"expected_variance", number(row.expected.variance)},
          {"expected_shift", number(row.expected.shift)}};
}

}  // namespace
}  // namespace norm_errors

AnalysisResult find_norm_errors(std::span<const std::int64_t> lengths) {
  using namespace norm_errors;
  const std::vector<Row> rows = measure_all(lengths);
  AnalysisResult finding{.key = "norm_errors", .values = Json::array()};
  for (const Row& row : rows) finding.values.push_back(json_of(row));
  finding.sections.push_back(section(rows));
  finding.sentence = fmt::format("of norms' variances within {:g} of {} of {}", allowed_factor,
                                 std::ranges::count_if(rows, agrees), rows.size());
  return finding;
}

}  // namespace halfscope
