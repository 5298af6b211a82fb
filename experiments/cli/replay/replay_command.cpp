// halfscope replay: what other loss scalers, or scales of operands, would have done over a recorded run.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

#include <halfscope/core/stderr_text.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/scaling/scaler_options.hpp>
#include <halfscope/scaling/trace.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/replay/log_report.hpp"
#include "experiments/cli/replay/replay_rows.hpp"
#include "experiments/cli/replay/scaling_report.hpp"
#include "experiments/definition/settings.hpp"
#include "experiments/table/text_table.hpp"

namespace halfscope {
namespace {

constexpr std::string_view option_prefix = "--set ";

struct ReplayOptions {
  std::string trace;
  std::vector<std::string> scalers;
  std::vector<std::string> assignments;
  std::string scaling;
  std::string columns;
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

/// On scales that no gradient holds back.
void print_growth(const TraceReplay& trace) {
  constexpr double held = 0x1p64;  // no rule starts there, and none that has a limit ends there
  std::vector<std::string> names;
  for (const ReplayCandidate& candidate : trace.candidates())
    if (candidate.replay.scales().back() >= held) names.push_back(printable(candidate.name));
  if (trace.all_zero() > 0) {
    print_note(
        fmt::format("{} of them have gradients that are all 0, which no scale changes: look for a loss "
                    "that is cut off from the weights (detach, a mask, dead units).",
                    trace.all_zero()));
  }
  if (names.empty()) return;
  print_note(
      fmt::format("Nothing limits the growth of {}, which ends at 2^127 with FP32's range; a scaler "
                  "without that end becomes infinite and stays so. apex_amp ends at 2^24.",
                  fmt::join(names, ", ")));
}

void print(const TraceReplay& trace) {
  Table table{replay_columns(), {}};
  for (const ReplayCandidate& candidate : trace.candidates()) table.rows.push_back(replay_row(candidate));
  std::cout << write_table(table, {.width = output_width()}) << "\n";
  for (const ReplayCandidate& candidate : trace.candidates()) print_end_of_run(candidate);
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
  print_growth(trace);
}

void print_json(const TraceReplay& trace) {
  Json list = Json::array();
  for (const ReplayCandidate& candidate : trace.candidates()) list.push_back(replay_json(candidate));
  std::cout << to_line(
                   {{"steps", trace.steps().size()}, {"not_finite", trace.not_finite()}, {"scalers", list}})
            << "\n";
}

void take_steps(const SkipLog& log, const std::string& path, SkipLogReplay& replay) {
  try {
    replay.take(log);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", printable(path), error.what()));
  }
}

[[noreturn]] void ask_for_rules() {
  throw InvalidArgument(
      "give --scaler for loss scales, or --scaling for scales of operands; see 'halfscope replay --help'");
}

void replay(const ReplayOptions& options) {
  if (!options.scalers.empty() && !options.scaling.empty()) ask_for_rules();
  if (!options.scaling.empty()) {
    if (!options.columns.empty())
      throw InvalidArgument("--columns is for logs; --scaling takes a run's record");
    if (!options.assignments.empty())
      throw InvalidArgument("--set is for --scaler; --scaling takes delayed(history=N, margin=N)");
    return options.json ? print_scalings_json(options.trace, options.scaling)
                        : print_scalings(options.trace, options.scaling);
  }
  const ScalerSettings settings = settings_of(options.assignments);
  TraceReplay trace(options.scalers, settings, option_prefix);
  const auto log = read_trace_or_log(
      options.trace, [&](const TraceStep& step) { trace.step(step); }, parse_log_columns(options.columns));
  if (log) {
    SkipLogReplay replay(options.scalers, settings, option_prefix);
    take_steps(*log, options.trace, replay);
    return options.json ? print_log_replay_json(*log, replay) : print_log_replay(*log, replay);
  }
  if (options.scalers.empty()) ask_for_rules();
  for (const std::string& name : trace.left_out())
    print_stderr(fmt::format("leaving out {}: the trace has no histograms\n", name));
  if (options.json) return print_json(trace);
  print(trace);
}

}  // namespace

void add_replay_command(CLI::App& app) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand(
      "replay", "a recorded run under other loss scalers, or scales of operands, side by side");
  command
      ->add_option("TRACE", options->trace,
                   "metrics.jsonl of a run, or any log of a training with steps and loss scales or gradient "
                   "norms: as it was "
                   "printed, CSV, JSON lines, or an event file of TensorBoard")
      ->required();
  command
      ->add_option("--scaler", options->scalers,
                   "A,B: names of 'halfscope list scalers', numbers, and all; a log without it has its "
                   "verdict alone")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--set", options->assignments,
                   "OPTION=VALUE: change an option of the scalers that have it; repeatable")
      ->allow_extra_args(false);
  command->add_option("--scaling", options->scaling,
                      "A,B: scales of operands instead: current, or delayed(history=N, margin=N, "
                      "max|most_recent)");
  command->add_option(
      "--columns", options->columns,
      "ROLE=NAME,...: names in a log that stand for step, loss_scale, grad_norm and loss, as in "
      "step=iter,loss_scale=lg_scale:log2");
  command->add_flag("--json", options->json, "as JSON on stdout");
  command->callback([options] { replay(*options); });
}

}  // namespace halfscope
