// Prints what a log of skipped steps tells of loss scalers, and what it does not.
#include "experiments/cli/replay/log_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <string_view>

#include <halfscope/core/stderr_text.hpp>
#include <halfscope/scaling/scalers.hpp>

#include "experiments/cli/replay/replay_rows.hpp"

namespace halfscope {
namespace {

Table table_of(const std::vector<SkipLogOutcome>& outcomes) {
  Table table{replay_columns(), {}};
  std::erase_if(table.columns, [](const Column& column) { return column.key == "flushed"; });
  table.columns.insert(table.columns.begin() + 1, {"gradients", "gradients"});
  table.columns.push_back({"first_unsure", "unsure from", 1});
  constexpr std::ptrdiff_t flushed = 3;
  for (const SkipLogOutcome& outcome : outcomes) {
    std::vector<Cell> row = replay_row(*outcome.candidate);
    row.erase(row.begin() + flushed);
    row.insert(row.begin() + 1, std::string(outcome.gradients));
    row.push_back(outcome.first_unsure ? count_cell(*outcome.first_unsure) : Cell{"-", std::monostate{}});
    table.rows.push_back(std::move(row));
  }
  return table;
}

void note_left_out(const SkipLogReplay& replay) {
  for (const std::string& name : replay.least().left_out()) {
    const bool histogram = make_scaler(name)->needs() == GradientDetail::histogram;
    print_stderr(fmt::format("leaving out {}: a log of skipped steps does not hold the gradients' {}\n", name,
                             histogram ? "histogram" : "largest magnitude"));
  }
}

void print_what_is_unsure(const SkipLog& log) {
  if (log.bar_total > 0) {
    print_note(
        fmt::format("No line counts steps: they are those of the progress bar up to {}.", log.bar_total));
  }
  if (log.unsure_steps > 0) {
    print_note(
        fmt::format("{} of the skipped steps lie somewhere between two lines of the log that count steps: "
                    "they are taken as the "
                    "first after the earlier line.",
                    log.unsure_steps));
  }
  if (log.unsure_scales > 0) {
    print_note(fmt::format(
        "Of {} of the skipped steps the scale is inferred from the scales in the lines around them.",
        log.unsure_scales));
  }
  if (log.missing > 0)
    print_note(fmt::format(
        "{} more skipped steps are counted in the log, but have no line: they are left out.", log.missing));
}

}  // namespace

void print_log_replay(const SkipLog& log, const SkipLogReplay& replay) {
  note_left_out(replay);
  std::cout << write_table(table_of(replay.outcomes()), {.width = output_width()}) << "\n";
  for (const SkipLogOutcome& outcome : replay.outcomes()) print_end_of_run(*outcome.candidate);
  print_note(fmt::format(
      "A log of {}: {} steps, {} of them skipped. A skipped step is taken to overflow at its loss scale S "
      "and above, "
      "and to be finite below. Of any other step the log tells that max|g| is at most 65504/S{}: 'least' "
      "takes its "
      "gradients as zero, 'greatest' as that bound, and with 'any' of them the outcome is the same.",
      log.format == SkipLogFormat::deepspeed ? "DeepSpeed" : "Megatron-LM", log.step_count(), log.skipped,
      log.format == SkipLogFormat::deepspeed ? ""
                                             : ", and at most the gradients' norm where that is logged"));
  print_what_is_unsure(log);
}

void print_log_replay_json(const SkipLog& log, const SkipLogReplay& replay) {
  note_left_out(replay);
  Json list = Json::array();
  for (const SkipLogOutcome& outcome : replay.outcomes()) {
    Json row = replay_json(*outcome.candidate);
    row["gradients"] = outcome.gradients;
    row["first_unsure"] = outcome.first_unsure ? Json(*outcome.first_unsure) : Json();
    list.push_back(std::move(row));
  }
  std::cout << to_line({{"log", name_of(log.format)},
                        {"steps", log.step_count()},
                        {"not_finite", log.skipped},
                        {"unsure_steps", log.unsure_steps},
                        {"unsure_scales", log.unsure_scales},
                        {"missing", log.missing},
                        {"bar_total", log.bar_total},
                        {"step_numbers", replay.least().steps()},
                        {"scalers", std::move(list)}})
            << "\n";
}

}  // namespace halfscope
