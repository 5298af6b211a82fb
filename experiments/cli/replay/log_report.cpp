// Prints what a log of skipped steps tells of loss scalers, and what it does not.
#include "experiments/cli/replay/log_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <iostream>
#include <string_view>

#include <halfscope/core/stderr_text.hpp>
#include <halfscope/scaling/scalers.hpp>

#include "experiments/cli/replay/replay_rows.hpp"

namespace halfscope {
namespace {

/// Scales of the steps, and the one that the last step leaves where that is another.
std::string recorded_scales(const SkipLog& log, const RecordedRun& run) {
  if (log.uneven) return "-";
  const std::string steps = scales_over_time(run.scales);
  if (!run.next_scale || *run.next_scale == run.scales.back()) return steps;
  return fmt::format("{}, then {:.3g}", steps, std::log2(*run.next_scale));
}

/// Skipped steps, with those that no line tells of as far as the log bounds them.
Cell skips_of(const SkipLog& log, std::int64_t skips) {
  if (log.restart) return {fmt::format("at least {}", log.restart->skipped), log.restart->skipped};
  const std::int64_t least = skips + log.skipped_in_holes;
  if (log.open_steps > 0) return {fmt::format("at least {}", least), least};
  if (log.unknown_steps > 0) return {least > 0 ? fmt::format("at least {}", least) : "unknown", least};
  const std::int64_t most = log.missing == 0 ? log.most_skipped().value_or(skips) : skips + log.hidden_skips;
  if (most > skips) return {fmt::format("{} to {}", skips, most), skips};
  return count_cell(skips);
}

/// The recorded run itself, in the columns of `table_of`.
std::vector<Cell> recorded_row(const SkipLog& log, const RecordedRun& run) {
  const Cell none{"-", std::monostate{}};
  return {"recorded",
          none,
          skips_of(log, std::ssize(run.skips)),
          run.skips.empty() ? none : count_cell(run.skips.back()),
          recorded_scales(log, run),
          count_cell(run.first_at_final_scale),
          none};
}

/// "at least 3", "3 to 4", "3".
std::string words_of_skips(const SkipLog& log) {
  const std::int64_t least = log.restart ? log.restart->skipped : log.skipped + log.skipped_in_holes;
  if (log.unknown_steps > 0 || log.open_steps > 0 || log.restart) return fmt::format("at least {}", least);
  const std::int64_t most = log.most_skipped().value_or(least) - log.missing;
  return most > least ? fmt::format("{} to {}", least, most) : fmt::format("{}", least);
}

std::string words_of_steps(const SkipLog& log) {
  if (!log.numbers_steps) return fmt::format("{} entries without numbers of steps", log.step_count());
  return fmt::format("{} step{}", log.step_count(), log.step_count() == 1 ? "" : "s");
}

Table table_of(const SkipLog& log, const RecordedRun& run, const std::vector<SkipLogOutcome>& outcomes) {
  Table table{replay_columns(), {}};
  std::erase_if(table.columns, [](const Column& column) { return column.key == "flushed"; });
  table.columns.insert(table.columns.begin() + 1, {"gradients", "gradients"});
  table.columns.push_back({"first_unsure", "unsure from", 1});
  table.rows.push_back(recorded_row(log, run));
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

void print_reproduction(const RecordedRun& run) {
  if (!run.is_compared) return;
  if (run.reproduced_by.empty()) {
    return print_note(
        "No scaler of 'halfscope list scalers' does what the run did, with its own options and the "
        "log's first scale.");
  }
  print_note(fmt::format("These scalers do what the run did, from the log's first scale on: {}.",
                         fmt::join(run.reproduced_by, ", ")));
}

void print_notes(const SkipLog& log) {
  for (const std::string& note : log.notes) print_note(note);
  if (log.cut_line)
    print_note(fmt::format("Line {} has no end and may have been cut: it is left out.", *log.cut_line));
}

void print_what_is_unsure(const SkipLog& log) {
  if (!log.counts_steps)
    print_note("No line counts steps: the skipped ones are numbered one by one, and others are not known.");
  if (log.unknown_steps > 0) {
    const std::string steps = log.unknown_steps == 1
                                  ? "1 step lies in a hole"
                                  : fmt::format("{} steps lie in holes", log.unknown_steps);
    print_note(fmt::format(
        "{} between the log's lines, or where an attempt broke off: they may have been skipped or "
        "not, and 'greatest' takes them as overflows.",
        steps));
  }
  if (!log.counts_skips && log.open_steps == 0)
    print_note(
        "No line counts skips: a step is taken as skipped where the scale falls. A scaler with hysteresis "
        "skips others without lowering it.");
  if (log.uncounted > 0) {
    print_note(fmt::format(
        "The log contradicts itself: its counter leaves out {} of the skipped steps, of which its lines of "
        "overflow or its falling scale tell.",
        log.uncounted));
  }
  if (log.hidden_skips > 0) {
    print_note(fmt::format(
        "The scale falls by more halvings than there are steps: up to {} more were skipped that no line "
        "counts, or the scaler lowers its scale by more than half at once.",
        log.hidden_skips));
  }
  if (log.bar_total > 0) {
    print_note(
        fmt::format("No line counts steps: they are those of the progress bar up to {}.", log.bar_total));
  }
  if (log.unsure_steps > 0 && log.counts_steps) {
    print_note(fmt::format(
        "The place of {} of the skipped steps is not known: between two lines of the log that count "
        "steps they are taken as the first after the earlier line.",
        log.unsure_steps));
  }
  if (log.unsure_scales > 0) {
    print_note(fmt::format(
        "The scale of {} of the skipped steps is inferred from the scales in the lines around them.",
        log.unsure_scales));
  }
  if (log.missing > 0)
    print_note(fmt::format(
        "{} more skipped steps are counted in the log, but have no line: they are left out.", log.missing));
}

/// The steps, and what the rows of scalers take their gradients for.
void print_facts(const SkipLog& log, bool is_alone) {
  const std::string facts =
      fmt::format("{}: {}, {} of them skipped.", title_of(log), words_of_steps(log), words_of_skips(log));
  if (is_alone) return print_note(facts);
  print_note(fmt::format(
      "{} A skipped step overflows at its loss scale S and above; below S 'least' takes it as finite, "
      "'greatest' as not. {}: 'least' takes its gradients as zero, 'greatest' as that bound, and with 'any' "
      "of them the outcome is the same.",
      facts,
      log.has_scaler ? "For any other step whose line tells that it was not skipped max|g| is at most "
                       "65504/S, and at most the gradients' norm where that is logged"
                     : "For any other step the log tells that max|g| is at most the gradients' norm where "
                       "that is logged"));
}

}  // namespace

void print_log_replay(const SkipLog& log, const SkipLogReplay& replay) {
  note_left_out(replay);
  const RecordedRun run = recorded_run(log);
  const bool is_alone = replay.outcomes().empty();
  if (is_alone) print_note(verdict_of(log));
  std::cout << write_table(table_of(log, run, replay.outcomes()), {.width = output_width()}) << "\n";
  for (const SkipLogOutcome& outcome : replay.outcomes()) print_end_of_run(*outcome.candidate);
  if (!is_alone) print_note(verdict_of(log));
  print_reproduction(run);
  print_facts(log, is_alone);
  print_what_is_unsure(log);
  print_notes(log);
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
  const RecordedRun run = recorded_run(log);
  Json scales = Json::array();
  for (const double scale : run.scales) scales.push_back(std::log2(scale));
  const auto number = [](const std::optional<std::int64_t>& value) { return value ? Json(*value) : Json(); };
  std::cout << to_line({{"log", log.format},
                        {"steps", log.step_count()},
                        {"not_finite", log.skipped},
                        {"unsure_steps", log.unsure_steps},
                        {"unsure_scales", log.unsure_scales},
                        {"missing", log.missing},
                        {"bar_total", log.bar_total},
                        {"unknown_steps", log.unknown_steps},
                        {"skipped_in_holes", log.skipped_in_holes},
                        {"uncounted", log.uncounted},
                        {"hidden_skips", log.hidden_skips},
                        {"counts_steps", log.counts_steps},
                        {"has_scaler", log.has_scaler},
                        {"ended", number(log.ended)},
                        {"lost_from", number(log.lost_from())},
                        {"skipped_at_least", log.least_skipped()},
                        {"skipped_at_most", number(log.most_skipped())},
                        {"skipped_at_most_by_pytorch", number(log.most_by_rule)},
                        {"open_steps", log.open_steps},
                        {"lines", {log.lines.first, log.lines.last}},
                        {"cut_line", number(log.cut_line)},
                        {"stopped_line", number(log.stopped_line)},
                        {"restart_line", log.restart ? Json(log.restart->line) : Json()},
                        {"notes", log.notes},
                        {"verdict", verdict_of(log)},
                        {"recorded",
                         {{"skipped", run.skips.size()},
                          {"overflow_steps", run.skips},
                          {"scale_log2", std::move(scales)},
                          {"first_at_final_scale", run.first_at_final_scale},
                          {"next_scale_log2", run.next_scale ? Json(std::log2(*run.next_scale)) : Json()},
                          {"reproduced_by", run.reproduced_by}}},
                        {"step_numbers", replay.least().steps()},
                        {"scalers", std::move(list)}})
            << "\n";
}

}  // namespace halfscope
