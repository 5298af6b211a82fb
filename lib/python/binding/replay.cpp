// Binding of loss scalers' replays, for halfscope.replay.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include <halfscope/scaling/skip_log_replay.hpp>
#include <halfscope/scaling/trace.hpp>

#include "binding/bindings.hpp"
#include "binding/json_value.hpp"
#include "binding/scaler.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* replay_documentation =
    R"doc(Several scalers going through one trace, side by side.

names: as LossScaler takes them, or ["all"]: every scaler that a trace can be replayed through. options go to the
scalers that have them. Raises ValueError for an unknown scaler, an option that none of them has, and a value out of
range.)doc";

constexpr const char* step_documentation =
    "Takes the scalers through a recorded step. Raises ValueError where one looks at a histogram and "
    "there is none.";

constexpr const char* trace_step_documentation =
    R"doc(The step of a dictionary with the keys of a line of metrics.jsonl; its histogram may be a Histogram of FP16.

Raises ValueError for any other.)doc";

constexpr const char* read_trace_documentation =
    R"doc(Calls `take` with the steps of a file of JSON lines, in order; a log of a training is returned.

columns: names in a log, as --columns has them.

Raises ValueError with the file, and of JSON lines with the line, for any other.)doc";

constexpr const char* log_replay_documentation =
    R"doc(Several scalers going through a log, with the least and the greatest gradients that it allows.

names, options: as TraceReplay has them. Raises ValueError as that does, and for a scaler that looks at magnitudes;
"all" leaves it out.)doc";

TraceStep step_of(nb::handle record) {
  return trace_step(json_of(record));
}

std::optional<SkipLog> read_steps(const std::string& path, const nb::callable& take,
                                  const std::string& columns) {
  return read_trace_or_log(
      path, [&](const TraceStep& step) { take(step); }, parse_log_columns(columns));
}

nb::dict run_of(const ReplayCandidate& candidate) {
  const ScalerReplay& replay = candidate.replay;
  std::vector<double> scales = replay.scales();
  std::ranges::transform(scales, scales.begin(), [](double scale) { return std::log2(scale); });
  nb::dict run;
  run["scaler"] = candidate.name;
  run["skipped"] = replay.skips() ? replay.overflows().size() : 0;
  run["overflowed"] = replay.overflows().size();
  run["flushed"] = replay.flushed();
  run["first_at_final_scale"] = replay.first_at_final_scale();
  run["stopped"] = replay.stopped();
  run["overflow_steps"] = nb::tuple(nb::cast(replay.overflows()));
  run["scale_log2"] = nb::tuple(nb::cast(scales));
  return run;
}

nb::list runs_of(const TraceReplay& replay) {
  nb::list runs;
  for (const ReplayCandidate& candidate : replay.candidates()) runs.append(run_of(candidate));
  return runs;
}

nb::list outcomes_of(const SkipLogReplay& replay) {
  nb::list runs;
  for (const SkipLogOutcome& outcome : replay.outcomes()) {
    nb::dict run = run_of(*outcome.candidate);
    run["gradients"] = std::string(outcome.gradients);
    run["first_unsure"] = outcome.first_unsure;
    runs.append(run);
  }
  return runs;
}

nb::dict recorded_of(const SkipLog& log) {
  RecordedRun run = recorded_run(log);
  std::ranges::transform(run.scales, run.scales.begin(), [](double scale) { return std::log2(scale); });
  nb::dict recorded;
  recorded["skipped"] = run.skips.size();
  recorded["overflow_steps"] = run.skips;
  recorded["scale_log2"] = run.scales;
  recorded["first_at_final_scale"] = run.first_at_final_scale;
  recorded["next_scale_log2"] = run.next_scale ? std::optional(std::log2(*run.next_scale)) : std::nullopt;
  recorded["reproduced_by"] = run.reproduced_by;
  return recorded;
}

void bind_logs(nb::module_& module) {
  nb::class_<SkipLog>(module, "SkipLog", "Log of skipped steps.")
      .def_prop_ro(
          "format", [](const SkipLog& log) { return std::string(log.format); },
          "As halfscope replay --json has it.")
      .def_prop_ro("step_count", &SkipLog::step_count, "From the first step to the last.")
      .def_ro("skipped", &SkipLog::skipped, "Steps.")
      .def_ro("unsure_steps", &SkipLog::unsure_steps,
              "Skipped steps of which lines leave open which ones they were.")
      .def_ro("unsure_scales", &SkipLog::unsure_scales, "Skipped steps whose scale was inferred.")
      .def_ro("missing", &SkipLog::missing, "Skipped steps without a line.")
      .def_ro("bar_total", &SkipLog::bar_total, "Total of the progress bar that counts steps; 0: lines do.")
      .def_ro("unknown_steps", &SkipLog::unknown_steps,
              "Steps in holes between lines, or where an attempt broke off.")
      .def_ro("skipped_in_holes", &SkipLog::skipped_in_holes, "Skipped steps in holes, at least.")
      .def_ro("uncounted", &SkipLog::uncounted, "Skipped steps that the log's own counter leaves out.")
      .def_ro("hidden_skips", &SkipLog::hidden_skips,
              "Skipped steps that no line counts, at most: the scale falls by more than there are steps for.")
      .def_ro("counts_steps", &SkipLog::counts_steps, "Whether a line or a bar counts steps.")
      .def_ro("has_scaler", &SkipLog::has_scaler, "Whether anything scales the loss.")
      .def_ro("ended", &SkipLog::ended, "The step whose overflow at the smallest scale ended the run.")
      .def_prop_ro("lost_from", &SkipLog::lost_from, "The first step that was not finite and not skipped.")
      .def_prop_ro("skipped_at_least", &SkipLog::least_skipped, "Skipped steps.")
      .def_prop_ro("skipped_at_most", &SkipLog::most_skipped,
                   "Skipped steps; None where steps are not counted or no line tells of a scaler.")
      .def_ro("skipped_at_most_by_pytorch", &SkipLog::most_by_rule,
              "Skipped steps of PyTorch's scaler with its defaults; None where lines count skips.")
      .def_ro("open_steps", &SkipLog::open_steps, "Steps of which no line tells whether they were skipped.")
      .def_prop_ro(
          "lines",
          [](const SkipLog& log) {
            return std::vector{log.lines.first, log.lines.last};
          },
          "The first and the last line that were read.")
      .def_ro("cut_line", &SkipLog::cut_line, "A last line without an end, which is left out.")
      .def_ro("stopped_line", &SkipLog::stopped_line, "The line of an exception that ended the run.")
      .def_prop_ro(
          "restart_line",
          [](const SkipLog& log) { return log.restart ? std::optional(log.restart->line) : std::nullopt; },
          "A line before which a restart may lie that no count shows.")
      .def_ro("notes", &SkipLog::notes, "Names that were read, and what was left out.")
      .def_prop_ro("verdict", verdict_of, "Meaning of the run, in a sentence or two.")
      .def_prop_ro("recorded", recorded_of, "The recorded run itself.");
  nb::class_<SkipLogReplay>(module, "SkipLogReplay", log_replay_documentation)
      .def(
          "__init__",
          [](SkipLogReplay* self, const std::vector<std::string>& names, const nb::dict& options) {
            new (self) SkipLogReplay(names, settings_of(options), "replay: ");
          },
          nb::arg("names"), nb::arg("options"),
          nb::sig("def __init__(self, names: Sequence[str], options: Mapping[str, float]) -> None"))
      .def(
          "take", [](SkipLogReplay& self, const SkipLog& log) { self.take(log); }, nb::arg("log"),
          "Takes the scalers through a log. Raises ValueError for gaps of more than a million steps.")
      .def("runs", outcomes_of, nb::sig("def runs(self) -> list[dict[str, typing.Any]]"),
           "Fields of halfscope.replays.ScalerRun but final_scale_log2, per outcome.")
      .def_prop_ro(
          "steps", [](const SkipLogReplay& self) { return self.least().steps(); }, "Numbers of the steps.")
      .def_prop_ro(
          "left_out", [](const SkipLogReplay& self) { return self.least().left_out(); },
          "Scalers of \"all\" that look at magnitudes.");
}

}  // namespace

void bind_replay(nb::module_& module) {
  bind_logs(module);
  nb::class_<TraceStep>(module, "TraceStep", "Record of a step's weight gradients.");
  module.def("trace_step", step_of, nb::arg("record").none(),
             nb::sig("def trace_step(record: object) -> TraceStep"), trace_step_documentation);
  module.def("read_trace", read_steps, nb::arg("path"), nb::arg("take"), nb::arg("columns") = "",
             nb::sig("def read_trace(path: str, take: collections.abc.Callable[[TraceStep], None], columns: "
                     "str = \"\") -> "
                     "SkipLog | None"),
             read_trace_documentation);
  nb::class_<TraceReplay>(module, "TraceReplay", replay_documentation)
      .def(
          "__init__",
          [](TraceReplay* self, std::vector<std::string> names, const nb::dict& options) {
            new (self) TraceReplay(std::move(names), settings_of(options), "replay: ");
          },
          nb::arg("names"), nb::arg("options"),
          nb::sig("def __init__(self, names: Sequence[str], options: Mapping[str, float]) -> None"))
      .def("step", &TraceReplay::step, nb::arg("step"), step_documentation)
      .def("runs", runs_of, nb::sig("def runs(self) -> list[dict[str, typing.Any]]"),
           "Fields of halfscope.replays.ScalerRun but final_scale_log2, per scaler.")
      .def_prop_ro("steps", &TraceReplay::steps, "Numbers of the steps.")
      .def_prop_ro("not_finite", &TraceReplay::not_finite, "Steps that were recorded so.")
      .def_prop_ro("left_out", &TraceReplay::left_out,
                   "Scalers of \"all\" that look at histograms, where the first step has none.");
}

}  // namespace halfscope::python
