// Errors of FP16 means over ranks: draws gradients of ranks, averages them under every order and division,
// and compares.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <string_view>

#include <halfscope/arithmetic/normal.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/reduce/all_reduce.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/sums_table.hpp"

namespace halfscope {
namespace all_reduce_means {
namespace {

/// FP16 means of gradients over ranks in one order and division, against the exact means.
struct AllReduceRow {
  std::string gradients{};  ///< in words
  std::string order, division;
  std::int64_t ranks = 0;
  std::optional<double> relative_error{};  ///< root mean square over the finite means; empty without any
  double stagnated = 0;                    ///< share of the adds
  double flushed = 0;                      ///< share of the addends
  double overflowed = 0;                   ///< share of the means
};

constexpr std::size_t elements = 512;
constexpr std::array<std::int64_t, 4> rank_counts{8, 64, 512, 4096};

/// Normal numbers, rounded to FP16 as gradients are.
struct GradientKind {
  std::string_view name;
  float mean, deviation;
};
constexpr std::array gradient_kinds{
    GradientKind{"gradients of one sign, 0.003 +- 0.002", 3e-6f * 1024, 2e-6f * 1024},
    GradientKind{"gradients of both signs, +- 0.002", 0, 2e-6f * 1024},
    GradientKind{"large gradients of one sign, 32 +- 8", 32, 8},
    GradientKind{"small gradients of both signs, +- 2^-20", 0, 0x1p-20f},
};
/// Rules of division that differ in their arithmetic.
constexpr std::array<std::string_view, 5> divisions{"ddp", "fp16_compress_hook", "fsdp", "nccl_avg",
                                                    "deepspeed"};

struct RankedGradients {
  std::vector<std::vector<float>> of_rank;  // (ranks, elements)
  std::vector<double> exact;                ///< means
};

RankedGradients draw_gradients(const GradientKind& kind, std::int64_t ranks) {
  RankedGradients gradients;
  gradients.exact.resize(elements);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<float>& own = gradients.of_rank.emplace_back();
    const RandomStream stream{.seed = static_cast<std::uint64_t>(rank)};
    for (std::uint64_t e = 0; e < elements; ++e) {
      const float x = kind.mean + kind.deviation * normal_pair(stream, e / 2)[e % 2];
      own.push_back(round(x, {.format = fp16}));
      gradients.exact[e] += double{own.back()};
    }
  }
  for (double& sum : gradients.exact) sum /= static_cast<double>(ranks);
  return gradients;
}

/// Root mean square error of the finite means; empty without any.
std::optional<double> rms_error(const std::vector<float>& means, const std::vector<double>& exact) {
  double error = 0, size = 0;
  for (std::size_t e = 0; e < elements; ++e) {
    if (!std::isfinite(means[e])) continue;
    error += (double{means[e]} - exact[e]) * (double{means[e]} - exact[e]);
    size += exact[e] * exact[e];
  }
  return size == 0 ? std::nullopt : std::optional(std::sqrt(error / size));
}

AllReduceRow measure_mean(const RankedGradients& gradients, const AllReduceModel& model,
                          std::string_view division) {
  const std::int64_t ranks = std::ssize(gradients.of_rank);
  AllReduce all_reduce(model, parse_gradient_division(division),
                       {.ranks = ranks, .elements = static_cast<std::int64_t>(elements)});
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    all_reduce.put(rank, gradients.of_rank[static_cast<std::size_t>(rank)]);
  std::vector<float> means(elements);
  const AllReduceCounters counters = all_reduce.finish(means);
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  return {.order = to_string(model),
          .division = std::string(division),
          .ranks = ranks,
          .relative_error = rms_error(means, gradients.exact),
          .stagnated = share(counters.stagnated, counters.adds),
          .flushed = share(counters.addends_flushed, counters.adds + counters.elements),
          .overflowed = share(counters.means_overflowed, counters.elements)};
}

std::vector<AllReduceRow> table_rows() {
  std::vector<AllReduceRow> rows;
  for (const GradientKind& kind : gradient_kinds) {
    for (const std::int64_t ranks : rank_counts) {
      const RankedGradients gradients = draw_gradients(kind, ranks);
      for (const AllReduceOrder& order : all_reduce_orders) {
        for (const std::string_view division : divisions) {
          rows.push_back(measure_mean(gradients, {.order = &order}, division));
          rows.back().gradients = kind.name;
        }
      }
    }
  }
  return rows;
}

/// "3.1e-04", with the shares of adds, addends and means that something happened to.
std::string cell_text(const AllReduceRow& row) {
  std::string text = row.relative_error ? fmt::format("{:.1e}", *row.relative_error) : "-";
  const auto add = [&](char mark, double share) {
    if (share >= 0.005) text += fmt::format(" {}{:.0f}%", mark, 100 * share);
  };
  add('s', row.stagnated);
  add('f', row.flushed);
  add('o', row.overflowed);
  return text;
}

Json json_of(const AllReduceRow& row) {
  return {{"gradients", row.gradients},
          {"order", row.order},
          {"division", row.division},
          {"ranks", row.ranks},
          {"relative_error", row.relative_error ? Json(*row.relative_error) : Json()},
          {"stagnated", row.stagnated},
          {"flushed", row.flushed},
          {"overflowed", row.overflowed}};
}

}  // namespace
}  // namespace all_reduce_means

AnalysisResult find_all_reduces(const AnalysisInput& /*input*/) {
  using namespace all_reduce_means;
  AnalysisResult finding{.key = "all_reduces", .values = Json::array()};
  std::vector<PivotCell> cells;
  for (const AllReduceRow& row : table_rows()) {
    finding.values.push_back(json_of(row));
    cells.push_back(
        {row.gradients, {row.order, row.division}, fmt::format("N={}", row.ranks), cell_text(row)});
  }
  finding.sections = pivoted(cells, {"division"});
  finding.sections.front().heading =
      "error of FP16 means over N ranks, relative, root mean square; s: adds that stagnated, f: addends "
      "flushed, "
      "o: means that overflowed";
  return finding;
}

}  // namespace halfscope
