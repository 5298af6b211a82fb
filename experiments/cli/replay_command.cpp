// halfscope replay: what other loss scalers would have done over a recorded run.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include <halfscope/core/escape.hpp>
#include <halfscope/core/stderr_text.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/scaling/scaler_options.hpp>
#include <halfscope/scaling/trace.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/text_table.hpp"
#include "experiments/table/table.hpp"

namespace halfscope {
namespace {

struct ReplayOptions {
  std::string trace;
  std::vector<std::string> scalers;
  std::vector<std::string> assignments;
  bool json = false;
};

ScalerSettings settings_of(const std::vector<std::string>& assignments) {
  ScalerSettings settings;
  for (const auto& [option, value] : parse_assignments(assignments)) {
    settings[option] =
        parse_scaler_option(find_in_table("scaler option", option, scaler_option_table), value);
  }
  return settings;
}

Json to_json(const ReplayCandidate& candidate) {
  const ScalerReplay& replay = candidate.replay;
  Json scales = Json::array();
  for (const double scale : replay.scales()) scales.push_back(std::log2(scale));
  const std::size_t overflows = replay.overflows().size();
  return {{"scaler", candidate.name},
          {"skipped", replay.skips() ? overflows : 0},
          {"overflowed", overflows},
          {"flushed", replay.flushed() ? Json(*replay.flushed()) : Json()},
          {"final_scale_log2", scales.back()},
          {"first_at_final_scale", replay.first_at_final_scale()},
          {"stopped", replay.stopped() ? Json(*replay.stopped()) : Json()},
          {"overflow_steps", replay.overflows()},
          {"scale_log2", scales}};
}

constexpr std::size_t note_width = 120;

/// log2 of the scale at the trace's beginning, quarters and end.
std::string scales_over_time(const std::vector<double>& scales) {
  std::string text;
  for (std::size_t quarter = 0; quarter <= 4; ++quarter) {
    const double scale = scales[(scales.size() - 1) * quarter / 4];
    text += fmt::format("{}{:.3g}", quarter == 0 ? "" : " ", std::log2(scale));
  }
  return text;
}

std::vector<Cell> row_of(const ReplayCandidate& candidate) {
  const ScalerReplay& replay = candidate.replay;
  const auto& overflows = replay.overflows();
  const auto count = static_cast<std::int64_t>(overflows.size());
  return {escaped(candidate.name),
          replay.skips() ? count_cell(count) : Cell{fmt::format("0 ({} overflow)", count), std::int64_t{0}},
          overflows.empty() ? Cell{"-", std::monostate{}} : count_cell(overflows.back()),
          replay.flushed() ? Cell{percent(replay.flushed()), *replay.flushed()} : Cell{"-", std::monostate{}},
          scales_over_time(replay.scales()),
          count_cell(replay.first_at_final_scale())};
}

Table table_of(const TraceReplay& trace) {
  Table table{{{"scaler", "scaler"},
               {"skipped", "skipped"},
               {"last_skip", "last skip", 2},
               {"flushed", "flushed", 1},
               {"scale_log2", "log2 scale over time"},
               {"first_at_final_scale", "first at final", 3}},
              {}};
  for (const ReplayCandidate& candidate : trace.candidates()) table.rows.push_back(row_of(candidate));
  return table;
}

void print_note(const std::string& note) {
  std::cout << wrapped("  " + note, std::min(output_width(), note_width), "  ") << "\n";
}

void print(const TraceReplay& trace) {
  std::cout << write_table(table_of(trace), {.width = output_width()}) << "\n";
  for (const ReplayCandidate& candidate : trace.candidates()) {
    if (candidate.replay.stopped())
      print_note(fmt::format("{} ends the run at {}", escaped(candidate.name), *candidate.replay.stopped()));
  }
  print_note(fmt::format(
      "{} steps. Gradients are taken to stay what they were but for their scale; a step overflows where "
      "max|g| S reaches 65520.",
      trace.steps().size()));
  if (trace.not_finite() > 0) {
    print_note(
        fmt::format("{} of them were recorded with gradients that are not finite: they count as overflows at "
                    "their own scale and "
                    "above, below it as finite (recorded at a scale of 1 or less: at no scale).",
                    trace.not_finite()));
  }
}

void print_json(const TraceReplay& trace) {
  Json list = Json::array();
  for (const ReplayCandidate& candidate : trace.candidates()) list.push_back(to_json(candidate));
  std::cout << to_line(
                   {{"steps", trace.steps().size()}, {"not_finite", trace.not_finite()}, {"scalers", list}})
            << "\n";
}

void replay(const ReplayOptions& options) {
  TraceReplay trace(options.scalers, settings_of(options.assignments), "--set ");
  read_trace(options.trace, [&](const TraceStep& step) { trace.step(step); });
  if (trace.steps().empty()) throw InvalidArgument(printable(options.trace) + ": there is no step in it");
  for (const std::string& name : trace.left_out())
    print_stderr(fmt::format("leaving out {}: the trace has no histograms\n", name));
  if (options.json) return print_json(trace);
  print(trace);
}

}  // namespace

void add_replay_command(CLI::App& app) {
  auto options = std::make_shared<ReplayOptions>();
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
