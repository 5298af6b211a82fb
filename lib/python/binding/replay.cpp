// Binding of a loss scaler's replay, for halfscope.replay.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <halfscope/scaling/replay.hpp>

#include "binding/bindings.hpp"
#include "binding/scaler.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* step_documentation =
    R"doc(Takes the scaler through a recorded step.

scale: what the step's gradients carry. finite, max_abs, histogram: of all weight gradients together, max_abs (0 where
they are not finite) and histogram with the scale in them. Raises ValueError where the scaler looks at a histogram and
there is none.)doc";

void take_step(ScalerReplay& self, std::int64_t step, double scale, bool finite, double max_abs,
               const ExponentHistogram* histogram) {
  TraceStep trace{.step = step, .scale = scale, .finite = finite, .max_abs = max_abs};
  if (histogram != nullptr) trace.histogram = *histogram;
  self.step(trace);
}

}  // namespace

void bind_replay(nb::module_& module) {
  nb::class_<ScalerReplay>(module, "ScalerReplay", "A scaler going through a recorded run, step by step.")
      .def(
          "__init__",
          [](ScalerReplay* self, NamedScaler& scaler) { new (self) ScalerReplay(*scaler.scaler); },
          nb::arg("scaler"), nb::keep_alive<1, 2>())
      .def("step", take_step, nb::arg("step"), nb::arg("scale"), nb::arg("finite"), nb::arg("max_abs"),
           nb::arg("histogram").none() = nb::none(), step_documentation)
      .def_prop_ro("scales", &ScalerReplay::scales, "of each step")
      .def_prop_ro("overflows", &ScalerReplay::overflows, "the steps that overflow")
      .def_prop_ro("skips", &ScalerReplay::skips, "whether a step that overflows is skipped")
      .def_prop_ro("flushed", &ScalerReplay::flushed,
                   "mean share of the nonzero gradients that becomes zero; None without histograms")
      .def_prop_ro("first_at_final_scale", &ScalerReplay::first_at_final_scale)
      .def_prop_ro("stopped", &ScalerReplay::stopped, "why the scaler would have ended the run, or None");
}

}  // namespace halfscope::python
