// halfscope replay: what other loss scalers would have done over a recorded run.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include <halfscope/io/file.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/scaling/trace.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/text_table.hpp"

namespace halfscope {
namespace {

struct Options {
  std::string trace;
  std::vector<std::string> scalers;
  std::vector<std::string> assignments;
  bool json = false;
};

struct Contestant {
  std::string name;
  std::unique_ptr<LossScaler> scaler;
  ScalerReplay replay;
};

/// What the trace holds of its steps.
struct TraceCounts {
  std::int64_t steps = 0, not_finite = 0;
};

bool knows(const std::string& scaler, const std::string& option) {
  const auto options = find_scaler(scaler).options;
  return std::any_of(options.begin(), options.end(),
                     [&](const ScalerOption& known) { return known.name == option; });
}

ScalerSettings options_of(const Options& options, const std::vector<std::string>& scalers) {
  ScalerSettings settings;
  for (const auto& assignment : parse_assignments(options.assignments)) {
    const std::string& key = assignment.first;
    settings[key] =
        parse_scaler_option(find_in_table("scaler option", key, scaler_option_table), assignment.second);
    const auto knows_it = [&](const std::string& scaler) { return knows(scaler, key); };
    if (std::none_of(scalers.begin(), scalers.end(), knows_it)) {
      throw InvalidArgument(fmt::format("--set {}: none of the scalers has this option", key));
    }
  }
  return settings;
}

std::vector<Contestant> contestants(const Options& options, const std::vector<std::string>& names) {
  const ScalerSettings settings = options_of(options, names);
  std::vector<Contestant> all;
  for (const std::string& name : names) {
    ScalerSettings own;
    for (const auto& [option, value] : settings) {
      if (knows(name, option)) own[option] = value;
    }
    std::unique_ptr<LossScaler> scaler = make_scaler(name, own);
    ScalerReplay replay(*scaler);
    all.push_back({name, std::move(scaler), std::move(replay)});
  }
  return all;
}

TraceCounts run(const Options& options, bool everybody, std::vector<Contestant>& all) {
  TraceCounts counts;
  read_trace(options.trace, [&](const TraceStep& step) {
    if (everybody && counts.steps == 0 && !step.histogram) {
      std::erase_if(all, [](const Contestant& one) {
        const bool leaves = one.scaler->needs() == GradientDetail::histogram;
        if (leaves) fmt::print(stderr, "leaving out {}: the trace has no histograms\n", one.name);
        return leaves;
      });
    }
    ++counts.steps;
    if (!step.finite) ++counts.not_finite;
    for (Contestant& one : all) one.replay.step(step);
  });
  if (counts.steps == 0) throw InvalidArgument(printable(options.trace) + ": there is no step in it");
  return counts;
}

Json to_json(const Contestant& one) {
  const ScalerReplay& replay = one.replay;
  Json scales = Json::array();
  for (const double scale : replay.scales()) scales.push_back(std::log2(scale));
  const std::size_t overflows = replay.overflows().size();
  return {{"scaler", one.name},
          {"skipped", replay.skips() ? overflows : 0},
          {"overflowed", overflows},
          {"flushed", replay.flushed() ? Json(*replay.flushed()) : Json()},
          {"final_scale_log2", scales.back()},
          {"first_at_final_scale", replay.first_at_final_scale()},
          {"stopped", replay.stopped() ? Json(*replay.stopped()) : Json()},
          {"overflow_steps", replay.overflows()},
          {"scale_log2", scales}};
}

/// log2 of the scale at the trace's beginning, quarters and end.
std::string course(const std::vector<double>& scales) {
  std::string text;
  for (std::size_t quarter = 0; quarter <= 4; ++quarter) {
    const double scale = scales[(scales.size() - 1) * quarter / 4];
    text += fmt::format("{}{:.3g}", quarter == 0 ? "" : " ", std::log2(scale));
  }
  return text;
}

std::vector<std::string> row_of(const Contestant& one) {
  const ScalerReplay& replay = one.replay;
  const auto& overflows = replay.overflows();
  return {
      one.name,
      replay.skips() ? fmt::format("{}", overflows.size()) : fmt::format("0 ({} overflow)", overflows.size()),
      overflows.empty() ? "-" : fmt::format("{}", overflows.back()),
      percent(replay.flushed()),
      course(replay.scales()),
      fmt::format("{}", replay.first_at_final_scale())};
}

void print(const std::vector<Contestant>& all, const TraceCounts& counts) {
  std::vector<std::vector<std::string>> rows{
      {"scaler", "skipped", "last skip", "flushed", "log2 scale over time", "first at final"}};
  for (const Contestant& one : all) rows.push_back(row_of(one));
  std::cout << text_table(rows) << "\n";
  for (const Contestant& one : all) {
    if (one.replay.stopped())
      std::cout << fmt::format("  {} ends the run at {}\n", one.name, *one.replay.stopped());
  }
  std::cout << fmt::format(
      "  {} steps. Gradients are taken to stay what they were but for their scale; a step overflows where "
      "max|g| S "
      "reaches 65520.\n",
      counts.steps);
  if (counts.not_finite > 0) {
    std::cout << fmt::format(
        "  {} of them were recorded with gradients that are not finite: they count as overflows at their own "
        "scale "
        "and above, below it\n  as finite (recorded at a scale of 1 or less: at no scale).\n",
        counts.not_finite);
  }
}

void replay(const Options& options) {
  const ScalersToReplay scalers = scalers_to_replay(options.scalers);
  std::vector<Contestant> all = contestants(options, scalers.names);
  const TraceCounts counts = run(options, scalers.all, all);
  if (!options.json) return print(all, counts);
  Json list = Json::array();
  for (const Contestant& one : all) list.push_back(to_json(one));
  std::cout << to_line({{"steps", counts.steps}, {"not_finite", counts.not_finite}, {"scalers", list}})
            << "\n";
}

}  // namespace

void add_replay_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("replay", "a recorded run under other loss scalers, side by side");
  command->add_option("TRACE", options->trace, "metrics.jsonl of a run")->required();
  command->add_option("--scaler", options->scalers, "A,B: names of 'halfscope list scalers', numbers, or all")
      ->required()
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--set", options->assignments,
                   "OPTION=VALUE: change an option of the scalers that have it; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "as JSON on stdout");
  command->callback([options] { replay(*options); });
}

}  // namespace halfscope
