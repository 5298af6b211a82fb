// Measures columns over the runs of an arm.
#include "experiments/results/arm_columns.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <halfscope/core/names.hpp>

#include "sim/train/rank_gradients.hpp"

namespace halfscope {
namespace {

using Runs = const std::vector<FinishedRun>&;
using Measured = std::optional<double>;

Measured mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Measured largest(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : Measured(*std::ranges::max_element(values));
}

/// The upper one of an even number.
Measured median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// The numbers under `key` of the runs' summaries, without those that are null.
std::vector<double> numbers(Runs runs, const char* key) {
  std::vector<double> values;
  for (const FinishedRun& run : runs) {
    if (run.summary.contains(key) && run.summary[key].is_number())
      values.push_back(run.summary[key].get<double>());
  }
  return values;
}

/// `number` of the member `key` of each run that has it.
template <typename Number>
std::vector<double> from_members(Runs runs, const char* key, const Number& number) {
  std::vector<double> values;
  for (const FinishedRun& run : runs)
    if (run.summary.contains(key)) values.push_back(number(run.summary[key]));
  return values;
}

/// The share of the non-zero gradients that `key` counts, mean over the runs that observed any.
Measured gradient_share(Runs runs, const char* key) {
  std::vector<double> shares;
  for (const FinishedRun& run : runs) {
    if (!run.summary.contains("gradients")) continue;
    const Json& gradients = run.summary["gradients"];
    const auto nonzero = gradients.at("nonzero").get<double>();
    if (nonzero > 0) shares.push_back(gradients.at(key).get<double>() / nonzero);
  }
  return mean_of(shares);
}

bool are_in_fp32(Runs runs) {
  return !runs.empty() && runs.front().is_in_fp32();
}

Measured mean_log2_scale(Runs runs) {
  std::vector<double> scales = numbers(runs, "final_scale");
  for (double& scale : scales) scale = std::log2(scale);
  return mean_of(scales);
}

/// The losses behind a model's first.
Measured further_skipped(Runs runs) {
  return mean_of(from_members(runs, "further_losses", [](const Json& losses) {
    double sum = 0;
    for (const Json& loss : losses) sum += loss.at("skipped").get<double>();
    return sum;
  }));
}

Measured step_bytes(Runs runs) {
  return largest(from_members(runs, "memory",
                              [](const Json& memory) { return memory.at("peak_step_bytes").get<double>(); }));
}

/// Share of what `whole` counts that `part` counts, in the operands of an arm's runs together.
Measured operand_share(Runs runs, const char* part, const char* whole) {
  double parts = 0, all = 0;
  for (const FinishedRun& run : runs) {
    if (!run.summary.contains("operands")) continue;
    parts += run.summary["operands"].at(part).get<double>();
    all += run.summary["operands"].at(whole).get<double>();
  }
  return all == 0 ? Measured() : Measured(parts / all);
}

/// All-reduces of an arm's seeds together.
struct AllReduces {
  AllReduceCounters counters{};
  double steps = 0, stagnated_steps = 0;
};

/// Empty where no run has several ranks.
std::optional<AllReduces> all_reduces(Runs runs) {
  AllReduces all;
  for (const FinishedRun& run : runs) {
    if (!run.summary.contains("all_reduce")) continue;
    const Json& counters = run.summary["all_reduce"];
    all.counters.merge(all_reduce_counters(counters));
    all.steps += counters.at("steps").get<double>();
    all.stagnated_steps += counters.at("stagnated_steps").get<double>();
  }
  return all.counters.adds == 0 ? std::nullopt : std::optional(all);
}

/// Share of the elements of linear layers' weight gradients.
Measured zero_share(Runs runs, const char* cause) {
  return mean_of(from_members(runs, "zero_causes", [&](const Json& causes) {
    return causes.at(cause).get<double>() / causes.at("elements").get<double>();
  }));
}

template <typename Part, typename Whole>
Measured all_reduce_share(Runs runs, const Part& part, const Whole& whole) {
  const std::optional<AllReduces> all = all_reduces(runs);
  if (!all) return std::nullopt;
  return static_cast<double>(part(*all)) / static_cast<double>(whole(*all));
}

using C = const AllReduces&;
constexpr double mebibytes = 1.0 / (1 << 20);

// A line for each: its key, its title, how it is measured, and where and how it is shown.
constexpr std::array columns{
    ArmColumn{"accuracy", "accuracy %", [](Runs runs) { return mean_of(numbers(runs, "accuracy")); },
              InTable::where_known, InJson::where_known, 12, Written::number, 1},
    ArmColumn{"diverged", "diverged", nullptr, InTable::always, InJson::never, 2, Written::of_seeds},
    ArmColumn{"skipped", "skipped", [](Runs runs) { return mean_of(numbers(runs, "skipped")); },
              InTable::always, InJson::always, 6},
    ArmColumn{"flushed",
              {},
              [](Runs runs) { return gradient_share(runs, "flushed"); },
              InTable::never,
              InJson::always,
              0,
              Written::share,
              1},
    ArmColumn{"fp16_flushed", "flushed",
              [](Runs runs) { return are_in_fp32(runs) ? Measured() : gradient_share(runs, "flushed"); },
              InTable::always, InJson::never, 1, Written::share, 1, 1, "flushed"},
    ArmColumn{"fp16_would_flush", "FP16 would flush",
              [](Runs runs) { return are_in_fp32(runs) ? gradient_share(runs, "flushed") : Measured(); },
              InTable::where_known, InJson::never, 13, Written::share, 1, 1, "would_flush"},
    ArmColumn{"subnormal",
              {},
              [](Runs runs) { return gradient_share(runs, "subnormal"); },
              InTable::never,
              InJson::always,
              0,
              Written::share,
              1},
    ArmColumn{"overflow",
              {},
              [](Runs runs) { return gradient_share(runs, "overflow"); },
              InTable::never,
              InJson::always,
              0,
              Written::share,
              1},
    ArmColumn{"lost_updates", "lost updates",
              [](Runs runs) { return mean_of(numbers(runs, "lost_updates")); }, InTable::always,
              InJson::always, 3, Written::share, 1},
    ArmColumn{"update_projection", "applied / intended",
              [](Runs runs) { return mean_of(numbers(runs, "update_projection")); }, InTable::where_known,
              InJson::where_known, 18, Written::number, 3},
    ArmColumn{"lost_decays", "lost decays", [](Runs runs) { return mean_of(numbers(runs, "lost_decays")); },
              InTable::where_known, InJson::where_known, 19, Written::share, 1},
    ArmColumn{"zeros", "zero gradients", [](Runs runs) { return zero_share(runs, "zeros"); },
              InTable::where_known, InJson::where_known, 20, Written::share, 3},
    ArmColumn{"zeros_no_quantizer", "true zeros", [](Runs runs) { return zero_share(runs, "no_quantizer"); },
              InTable::where_known, InJson::where_known, 21, Written::share, 3},
    ArmColumn{"zeros_forward_operand", "by forward",
              [](Runs runs) { return zero_share(runs, "forward_operand"); }, InTable::where_known,
              InJson::where_known, 22, Written::share, 3},
    ArmColumn{"zeros_data_operand", "by dgrad", [](Runs runs) { return zero_share(runs, "data_operand"); },
              InTable::where_known, InJson::where_known, 23, Written::share, 3},
    ArmColumn{"zeros_weight_gradient_left", "by wgrad, gradient",
              [](Runs runs) { return zero_share(runs, "weight_gradient_left"); }, InTable::where_known,
              InJson::where_known, 24, Written::share, 3},
    ArmColumn{"zeros_weight_gradient_right", "by wgrad, activation",
              [](Runs runs) { return zero_share(runs, "weight_gradient_right"); }, InTable::where_known,
              InJson::where_known, 25, Written::share, 3},
    ArmColumn{"zeros_cancelled", "cancelled", [](Runs runs) { return zero_share(runs, "cancelled"); },
              InTable::where_known, InJson::where_known, 26, Written::share, 3},
    ArmColumn{"log_probability_gap", "RMS log p gap",
              [](Runs runs) { return mean_of(numbers(runs, "log_probability_gap")); }, InTable::where_known,
              InJson::where_known, 27, Written::number, 7},
    ArmColumn{"log_probability_bias", "mean log p gap",
              [](Runs runs) { return mean_of(numbers(runs, "log_probability_bias")); }, InTable::where_known,
              InJson::where_known, 28, Written::number, 7},
    ArmColumn{"kl_divergence", "KL divergence",
              [](Runs runs) { return mean_of(numbers(runs, "kl_divergence")); }, InTable::where_known,
              InJson::where_known, 29, Written::number, 7},
    ArmColumn{"seconds_per_step", "ms/step",
              [](Runs runs) { return median(numbers(runs, "seconds_per_step")); }, InTable::always,
              InJson::always, 7, Written::number, 1, 1000, "ms_per_step"},
    ArmColumn{"last_skipped_step", "last skip",
              [](Runs runs) { return largest(numbers(runs, "last_skipped_step")); }, InTable::with_scale,
              InJson::always, 8},
    ArmColumn{"final_scale_log2", "log2 final scale", mean_log2_scale, InTable::with_scale, InJson::always, 5,
              Written::number, 1},
    ArmColumn{"first_at_final_scale", "first at it",
              [](Runs runs) { return mean_of(numbers(runs, "first_at_final_scale")); }, InTable::with_scale,
              InJson::always, 9},
    ArmColumn{"peak_step_bytes", "step MB", step_bytes, InTable::with_memory, InJson::where_known, 9,
              Written::number, 2, 1e-6, "step_mb"},
    ArmColumn{"peak_device_bytes", "peak MiB",
              [](Runs runs) { return largest(numbers(runs, "peak_device_bytes")); }, InTable::where_known,
              InJson::always, 11, Written::number, 0, mebibytes, "peak_mib"},
    ArmColumn{"operands.flushed", "operands flushed",
              [](Runs runs) { return operand_share(runs, "flushed", "nonzero"); }, InTable::where_known,
              InJson::where_known, 14, Written::share, 2, 1, "operands_flushed"},
    ArmColumn{"operands.clipped", "clipped",
              [](Runs runs) { return operand_share(runs, "clipped", "nonzero"); }, InTable::where_known,
              InJson::where_known, 15, Written::share, 2, 1, "operands_clipped"},
    ArmColumn{"operands.zero_scales", "zero scales",
              [](Runs runs) { return operand_share(runs, "zero_scales", "blocks"); }, InTable::where_known,
              InJson::where_known, 16, Written::share, 2, 1, "zero_scales"},
    ArmColumn{"operands.scale_spread", "scale binades",
              [](Runs runs) {
                return largest(from_members(
                    runs, "operands", [](const Json& o) { return o.at("scale_spread").get<double>(); }));
              },
              InTable::where_known, InJson::where_known, 17, Written::number, 0, 1, "scale_spread"},
    ArmColumn{"further_skipped", {}, further_skipped, InTable::never, InJson::where_known},
    ArmColumn{"all_reduce.ranks",
              {},
              [](Runs runs) -> Measured {
                const auto all = all_reduces(runs);
                if (!all) return std::nullopt;
                return static_cast<double>(1 + all->counters.adds / all->counters.elements);
              },
              InTable::never,
              InJson::where_known,
              0,
              Written::count},
    ArmColumn{"all_reduce.stagnated",
              {},  // share of the adds
              [](Runs runs) {
                return all_reduce_share(
                    runs, [](C all) { return all.counters.stagnated; },
                    [](C all) { return all.counters.adds; });
              },
              InTable::never,
              InJson::where_known,
              0,
              Written::share,
              1},
    ArmColumn{"all_reduce.flushed",
              {},  // share of the addends, on their way to the wire
              [](Runs runs) {
                return all_reduce_share(
                    runs, [](C all) { return all.counters.addends_flushed; },
                    [](C all) { return all.counters.adds + all.counters.elements; });
              },
              InTable::never,
              InJson::where_known,
              0,
              Written::share,
              1},
    ArmColumn{"all_reduce.overflowed",
              {},  // share of the means, from finite addends
              [](Runs runs) {
                return all_reduce_share(
                    runs, [](C all) { return all.counters.means_overflowed; },
                    [](C all) { return all.counters.elements; });
              },
              InTable::never,
              InJson::where_known,
              0,
              Written::share,
              1},
    ArmColumn{"all_reduce.stagnated_steps",
              {},  // share of the steps with stagnated adds and nothing infinite
              [](Runs runs) {
                return all_reduce_share(
                    runs, [](C all) { return all.stagnated_steps; }, [](C all) { return all.steps; });
              },
              InTable::never,
              InJson::where_known,
              0,
              Written::share,
              1},
};

}  // namespace

std::span<const ArmColumn> arm_columns() {
  return columns;
}

std::vector<std::string_view> arm_column_keys() {
  std::vector<std::string_view> keys;
  for (const ArmColumn& column : columns) keys.push_back(column.key);
  return keys;
}

const ArmColumn& find_arm_column(std::string_view key) {
  const auto found = std::ranges::find(columns, key, &ArmColumn::key);
  if (found == columns.end()) throw InvalidArgument(unknown_name("column", key, arm_column_keys()));
  return *found;
}

std::string column_text(const ArmColumn& column, const std::optional<double>& value, int digits) {
  if (!value) return "-";
  const double scaled = *value * column.factor;
  const int shown = digits < 0 ? column.digits : digits;
  return column.written == Written::share ? fmt::format("{:.{}f} %", 100 * scaled, shown)
                                          : fmt::format("{:.{}f}", scaled, shown);
}

std::vector<std::optional<double>> measure_columns(const std::vector<FinishedRun>& runs) {
  std::vector<std::optional<double>> values;
  for (const ArmColumn& column : columns)
    values.push_back(column.measure == nullptr ? std::nullopt : column.measure(runs));
  return values;
}

}  // namespace halfscope
