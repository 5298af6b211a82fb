// Binding of a loss scaler's replay, for halfscope.replay.
#include <nanobind/stl/optional.h>

#include <nlohmann/json.hpp>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <halfscope/scaling/trace.hpp>

#include "binding/bindings.hpp"
#include "binding/json_value.hpp"
#include "binding/scaler.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* step_documentation =
    "Takes the scaler through a recorded step. Raises ValueError where the scaler looks at a histogram and "
    "there is none.";

constexpr const char* trace_step_documentation =
    R"doc(The step of a dictionary with the keys of a line of metrics.jsonl; its histogram may be a Histogram.

Raises ValueError for any other.)doc";

constexpr const char* read_trace_documentation =
    R"doc(Calls `take` with the steps of a file of JSON lines, in order.

Raises ValueError with the file and the line where one is not like that.)doc";

constexpr const char* scalers_to_replay_documentation =
    R"doc(The names, and False; for ["all"] those of every scaler that a trace can be replayed through, and True.)doc";

/// The histogram that the record of a step holds as an object; null where it holds none, or its counts.
const ExponentHistogram* histogram_in(nb::handle record, const Json& json) {
  const auto gradients = json.is_object() ? json.find("gradients") : json.end();
  if (gradients == json.end() || !gradients->is_object() || !gradients->contains("histogram")) return nullptr;
  const nb::object given = record["gradients"]["histogram"];
  return nb::isinstance<ExponentHistogram>(given) ? &nb::cast<const ExponentHistogram&>(given) : nullptr;
}

TraceStep step_of(nb::handle record) {
  Json json = json_of(record);
  const ExponentHistogram* histogram = histogram_in(record, json);
  if (histogram != nullptr) json["gradients"].erase("histogram");
  TraceStep step = trace_step(json);
  if (histogram != nullptr) step.histogram = *histogram;
  return step;
}

void read_steps(const std::string& path, const nb::callable& take) {
  read_trace(path, [&](const TraceStep& step) { take(step); });
}

nb::tuple scalers_of(std::vector<std::string> names) {
  const ScalersToReplay scalers = scalers_to_replay(std::move(names));
  return nb::make_tuple(scalers.names, scalers.all);
}

}  // namespace

void bind_replay(nb::module_& module) {
  nb::class_<TraceStep>(module, "TraceStep", "Record of a step's weight gradients.")
      .def_ro("step", &TraceStep::step)
      .def_ro("finite", &TraceStep::finite)
      .def_prop_ro("has_histogram", [](const TraceStep& self) { return self.histogram.has_value(); });
  module.def("trace_step", step_of, nb::arg("record").none(),
             nb::sig("def trace_step(record: object) -> TraceStep"), trace_step_documentation);
  module.def("read_trace", read_steps, nb::arg("path"), nb::arg("take"),
             nb::sig("def read_trace(path: str, take: collections.abc.Callable[[TraceStep], None]) -> None"),
             read_trace_documentation);
  module.def("scalers_to_replay", scalers_of, nb::arg("names"),
             nb::sig("def scalers_to_replay(names: Sequence[str]) -> tuple[list[str], bool]"),
             scalers_to_replay_documentation);
  nb::class_<ScalerReplay>(module, "ScalerReplay", "A scaler going through a recorded run, step by step.")
      .def(
          "__init__",
          [](ScalerReplay* self, NamedScaler& scaler) { new (self) ScalerReplay(*scaler.scaler); },
          nb::arg("scaler"), nb::keep_alive<1, 2>())
      .def("step", &ScalerReplay::step, nb::arg("step"), step_documentation)
      .def_prop_ro("scales", &ScalerReplay::scales, "of each step")
      .def_prop_ro("overflows", &ScalerReplay::overflows, "the steps that overflow")
      .def_prop_ro("skips", &ScalerReplay::skips, "whether a step that overflows is skipped")
      .def_prop_ro("flushed", &ScalerReplay::flushed,
                   "mean share of the nonzero gradients that becomes zero; None without histograms")
      .def_prop_ro("first_at_final_scale", &ScalerReplay::first_at_final_scale)
      .def_prop_ro("stopped", &ScalerReplay::stopped, "why the scaler would have ended the run, or None");
}

}  // namespace halfscope::python
