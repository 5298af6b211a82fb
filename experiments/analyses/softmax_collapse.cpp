// Examples that a softmax gives no gradient any more, at the first and the last observed step.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>

#include <halfscope/io/json/histogram_json.hpp>
#include <halfscope/stats/site.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/results/run_records.hpp"

namespace halfscope {
namespace softmax_collapse {
namespace {

/// The gradient of the logits at a step: it is 0 where the probability of the right class has rounded to 1.
struct Counts {
  std::int64_t step = 0;
  double zeros = 0, elements = 0;
};

Counts counts_of(const Json& record) {
  const ExponentHistogram histogram = histogram_of(record);
  return {record.at("step").get<std::int64_t>(), static_cast<double>(histogram.zeros()),
          static_cast<double>(histogram.elements())};
}

struct Ends {
  Counts first, last;
};

/// First and last counts of the gradients that the backward pass makes first.
std::optional<Ends> ends_of(const RunRecords& records, const std::string& arm, std::int64_t seed) {
  std::optional<Ends> ends;
  records.each_histogram(arm, seed, [&](const Json& record) {
    const bool is_later = !ends || record.at("step").get<std::int64_t>() != ends->last.step;
    if (!is_later || record.at("role") != name_of(Role::activation_gradient)) return Reading::continues;
    const Counts counts = counts_of(record);
    ends = Ends{ends ? ends->first : counts, counts};
    return Reading::continues;
  });
  return ends;
}

/// Shares of an arm's examples, over its seeds.
struct Shares {
  std::int64_t first_step = 0, last_step = 0;
  double first = 0, last = 0;
};

std::optional<Shares> shares_of(const RunRecords& records, const std::string& arm) {
  Ends sums;
  double classes = 0;
  for (const FinishedRun& run : records.of_arm(arm).finished) {
    const std::optional<Ends> ends = ends_of(records, arm, run.seed);
    if (!ends || !run.config.contains("modulus")) continue;
    classes = run.config["modulus"].get<double>();
    for (const auto& [sum, own] : {std::pair{&sums.first, &ends->first}, {&sums.last, &ends->last}}) {
      sum->step = own->step;
      sum->zeros += own->zeros;
      sum->elements += own->elements;
    }
  }
  if (classes == 0 || sums.first.elements == 0) return std::nullopt;
  const auto share = [&](const Counts& counts) { return classes * counts.zeros / counts.elements; };
  return Shares{sums.first.step, sums.last.step, share(sums.first), share(sums.last)};
}

Cell percents(double share) {
  return {fmt::format("{:.1f} %", 100 * share), share};
}

}  // namespace
}  // namespace softmax_collapse

AnalysisResult find_softmax_collapse(const AnalysisInput& input) {
  using namespace softmax_collapse;
  Table table{{{"arm", "arm"},
               {"first_step", "step"},
               {"first", "without a gradient"},
               {"last_step", "step"},
               {"last", "without a gradient"}},
              {}};
  const RunRecords records(input.folder);
  for (const Arm& arm : input.experiment.arms) {
    const std::optional<Shares> shares = shares_of(records, arm.name);
    if (!shares) continue;
    table.rows.push_back({arm.name, count_cell(shares->first_step), percents(shares->first),
                          count_cell(shares->last_step), percents(shares->last)});
  }
  if (table.rows.empty()) return {};
  AnalysisResult finding{.key = "softmax_collapse", .values = rows_json(table)};
  finding.sections.push_back({.heading = "Predictions whose right class gets no gradient: p has rounded to 1",
                              .table = std::move(table)});
  return finding;
}

}  // namespace halfscope
