// Errors of sums by length, order and format beside their closed form, and the lengths at which they do harm.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <halfscope/kernel/reduce/reduce.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/drawn.hpp"
#include "experiments/analyses/norm_errors.hpp"
#include "experiments/analyses/onsets.hpp"
#include "experiments/analyses/sum_errors.hpp"
#include "experiments/analyses/sums_table.hpp"

namespace halfscope {
namespace where_fp32_sums {
namespace {

constexpr std::array<std::int64_t, 8> lengths{1 << 6,  1 << 8,  1 << 10, 1 << 12,
                                              1 << 14, 1 << 16, 1 << 18, 1 << 20};
constexpr std::int64_t most_drawn = std::int64_t{1} << 21, most_sums = 64, sampled = 4096;
constexpr std::array models{"fp16_sequential", "bf16_sequential", "fp32_sequential", "fp16_pairwise",
                            "bf16_pairwise",   "fp16_kahan",      "fp16_chunked(64)"};
/// A closed form is right where it is within this factor of the error that is measured.
constexpr double allowed_factor = 2;

/// Error of a sum from which harm is expected, and the terms that it is of.
struct Criterion {
  double error = 0.1;
  /// Terms that the series' first sum has for each of the sum that decides.
  double first_terms = 1;
};
/// A norm's squares lose half: backward then leaves of the gradient along the normalised numbers, which it is
/// to take out, as much with the other sign. One norm divides out what the norm before it lost, so that the
/// shortest sum decides: that of cnn_bn's second norm, behind a pooling of 2 x 2.
constexpr Criterion of_norms{.error = 0.5, .first_terms = 4};

/// Sums of a network: their terms, and the series of arms that train with them.
struct Kind {
  std::string_view terms;
  std::string_view series;  ///< empty: errors alone
  float (*term)(float normal);
  Criterion harmful{};
};

float squared(float x) {
  return x * x;
}
float exponential(float x) {
  return std::exp(x);
}
float loss(float x) {
  return 8.3f + 0.5f * x;
}
float gradient(float x) {
  return 0.1f + x;
}

constexpr std::array kinds{
    Kind{"batch norm: squares of normal numbers", "batch_norm", squared, of_norms},
    Kind{"softmax: exponentials of normal logits, the largest 1", "softmax", exponential},
    Kind{"losses near 8.3", "", loss},
    Kind{"gradients of micro-batches: normal, mean 0.1", "accumulation", gradient},
    Kind{"attention: weights times normal values", "", nullptr},
};

/// Terms of several sums of one length.
struct Drawn {
  std::int64_t length = 0, sums = 0;
  std::vector<float> terms{};  // (length, sums)
};

Drawn draw(const Kind& kind, std::int64_t length) {
  Drawn drawn{.length = length, .sums = std::min(most_sums, most_drawn / length)};
  const auto size = static_cast<std::size_t>(length * drawn.sums);
  const auto site = static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(length)));
  drawn.terms = normal_numbers(size, site);
  const bool is_softmax = kind.term == exponential, is_attention = kind.term == nullptr;
  if (!is_softmax && !is_attention) {
    for (float& x : drawn.terms) x = kind.term(x);
    return drawn;
  }
  const std::vector<float> values = is_attention ? normal_numbers(size, site + 64) : std::vector<float>();
  const float largest = *std::ranges::max_element(drawn.terms);
  for (std::size_t i = 0; i < size; ++i)
    drawn.terms[i] = exponential(drawn.terms[i] - largest) * (is_attention ? values[i] : 1.0f);
  return drawn;
}

struct Row {
  std::string terms, model;
  std::int64_t count = 0;
  std::optional<double> error{};  ///< root mean square over that of the exact sums; empty: none is finite
  double overflowed = 0;          ///< share of the sums
  SumError expected{};
};

Row measure(const Kind& kind, const Drawn& drawn, const AccumulateModel& model) {
  const auto sums = static_cast<std::size_t>(drawn.sums);
  std::vector<float> results(sums);
  column_sums({.x = drawn.terms.data(), .rows = drawn.length, .columns = drawn.sums}, model, results);
  std::vector<double> exact(sums);
  for (std::size_t i = 0; i < drawn.terms.size(); ++i) exact[i % sums] += static_cast<double>(drawn.terms[i]);
  double squares = 0, errors = 0;
  std::size_t finite = 0;
  for (std::size_t c = 0; c < sums; ++c) {
    squares += exact[c] * exact[c];
    if (!std::isfinite(results[c])) continue;
    ++finite;
    errors += std::pow(static_cast<double>(results[c]) - exact[c], 2);
  }
  const auto all = static_cast<double>(sums), left = static_cast<double>(finite);
  const std::span sample =
      std::span(drawn.terms)
          .first(static_cast<std::size_t>(std::min(sampled, static_cast<std::int64_t>(drawn.terms.size()))));
  return {.terms = std::string(kind.terms),
          .model = to_string(model),
          .count = drawn.length,
          .error = finite == 0 ? std::nullopt : std::optional(std::sqrt(errors / left / (squares / all))),
          .overflowed = 1 - left / all,
          .expected = expected_error(sample, drawn.length, model)};
}

std::vector<Row> measure_all() {
  std::vector<Row> rows;
  for (const Kind& kind : kinds)
    for (const std::int64_t length : lengths) {
      const Drawn drawn = draw(kind, length);
      for (const char* name : models) rows.push_back(measure(kind, drawn, parse_accumulate_model(name)));
    }
  return rows;
}

/// "3e-04 / 2e-04", or "overflow" where it is expected to.
std::string cell_text(const Row& row) {
  const std::string measured = row.error ? fmt::format("{:.0e}", *row.error) : "inf";
  return fmt::format("{} / {}", measured,
                     row.expected.overflows ? "inf" : fmt::format("{:.0e}", row.expected.relative));
}

bool agrees(const Row& row) {
  if (row.expected.overflows || !row.error) return row.expected.overflows == (row.overflowed > 0.5);
  const double factor = *row.error / row.expected.relative;
  return factor <= allowed_factor && factor >= 1 / allowed_factor;
}

Json json_of(const Row& row) {
  return {{"terms", row.terms},
          {"model", row.model},
          {"count", row.count},
          {"error", row.error ? Json(*row.error) : Json()},
          {"overflowed", row.overflowed},
          {"expected", row.expected.overflows ? Json() : Json(row.expected.relative)}};
}

Section errors_section(const std::vector<Row>& rows, std::size_t first) {
  std::vector<PivotCell> cells;
  const std::size_t count = lengths.size() * models.size();
  for (const Row& row : std::span(rows).subspan(first, count))
    cells.push_back({row.terms, {row.model}, fmt::format("2^{}", std::ilogb(row.count)), cell_text(row)});
  return pivoted(cells).front();
}

/// The length at which the closed form of the arms' model reaches the error from which harm is expected. An
/// overflow is infinite behind the next norm too, so that there the longest sum decides.
std::optional<double> predicted_length(const Onset& onset, const std::vector<Row>& rows) {
  const auto kind = std::ranges::find(kinds, onset.series, &Kind::series);
  if (kind == kinds.end()) return std::nullopt;
  const bool is_model = std::ranges::count(models, std::string_view(onset.variant)) > 0;
  const std::string model = is_model ? onset.variant : onset.variant + "_sequential";
  std::optional<CurvePoint> before;
  for (const Row& row : rows) {
    if (row.terms != kind->terms || row.model != model) continue;
    const double error = row.expected.overflows ? 1 : row.expected.relative;
    const CurvePoint point{static_cast<double>(row.count), std::log(error)};
    const std::optional<double> reached =
        before ? crossing({*before, point}, std::log(kind->harmful.error)) : std::nullopt;
    if (reached) return *reached * (row.expected.overflows ? 1 : kind->harmful.first_terms);
    before = point;
  }
  return std::nullopt;
}

}  // namespace
}  // namespace where_fp32_sums

AnalysisResult find_where_fp32_sums(const AnalysisInput& input) {
  using namespace where_fp32_sums;
  const std::vector<Row> rows = measure_all();
  const std::vector<MapPoint> points = map_points(input);
  std::vector<Onset> onsets = onsets_of(points, Grows::up);
  for (Onset& onset : onsets) onset.predicted = predicted_length(onset, rows);
  AnalysisResult finding{.key = "where_fp32_sums", .values = to_json(points, onsets)};
  for (const Row& row : rows) finding.values["errors"].push_back(json_of(row));
  const auto right = std::ranges::count_if(rows, agrees);
  for (std::size_t i = 0; i < kinds.size(); ++i)
    finding.sections.push_back(errors_section(rows, i * lengths.size() * models.size()));
  finding.sections.front().heading =
      "Root mean square of the error over that of the exact sum, measured / closed form, by length";
  const AnalysisResult norms = find_norm_errors(lengths);
  finding.values["norms"] = norms.values;
  std::ranges::copy(norms.sections, std::back_inserter(finding.sections));
  if (!points.empty()) {
    finding.sections.push_back(points_section(points, "length"));
    finding.sections.push_back(onsets_section(onsets, "length"));
  }
  finding.sentence =
      fmt::format("The closed form is within a factor of {:g} of {} of {} measured errors; {}; {}",
                  allowed_factor, right, rows.size(), norms.sentence, predictions_in_words(onsets));
  return finding;
}

}  // namespace halfscope
