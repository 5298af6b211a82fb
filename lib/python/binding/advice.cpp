// Binding of the fits, reports and advice behind halfscope.analyze and halfscope.advise_scale.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <halfscope/format/quantizer.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/scaling/tensor_report.hpp>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"
#include "binding/windows.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* report_documentation = R"doc(Effects of a cast on one array at scale 1.

array: any shape, in CPU memory; types and errors as Histogram.update. `name` opens the messages.
format: of the cast. tolerance: share of the sum of magnitudes that underflow may cost at
a fitting scale.)doc";

constexpr const char* fit_documentation =
    "Which scales fit a tensor, from its histograms of one or more steps.";

constexpr const char* advise_documentation =
    "The scale for all of `tensors`, counted for `format`, with `headroom` binades left where they fit.";

TensorReport report(const std::string& name, nb::handle array, const std::string& format, double tolerance) {
  const FloatFormat parsed = parse_format(format);
  const AdvisorOptions options{.tolerance = checked_tolerance(tolerance)};
  const FloatVec input(array, fmt::format("'{}'", name), Float64::rounded_to_odd);
  const nb::gil_scoped_release release;
  SummaryPass pass(parsed);
  pass.add(input.values());
  return report_tensor(name, pass.summary(), options);
}

TensorFit fit(const std::string& name, const std::vector<const ExponentHistogram*>& steps, double tolerance) {
  const AdvisorOptions options{.tolerance = checked_tolerance(tolerance)};
  std::vector<TensorFit> fits;
  fits.reserve(steps.size());
  for (const ExponentHistogram* step : steps) fits.push_back(fit_tensor(name, *step, options));
  return merge_fits(fits);
}

Advice advise_all(const std::vector<TensorFit>& tensors, const std::string& format, double tolerance,
                  int headroom) {
  if (headroom < 0 || headroom > 64) {
    throw InvalidArgument(fmt::format("headroom = {}: give 0 to 64 binades", headroom));
  }
  return advise(tensors, parse_format(format),
                {.tolerance = checked_tolerance(tolerance), .headroom_log2 = headroom});
}

void bind_fit(nb::module_& module) {
  nb::class_<TensorFit>(module, "TensorFit", "Loss scales that fit one tensor.")
      .def_ro("name", &TensorFit::name)
      .def_ro("any_scale", &TensorFit::any_scale, "nothing in it is nonzero and finite")
      .def_ro("nonfinite", &TensorFit::nonfinite, "infinities and NaNs, before any scale")
      .def_ro(
          "underflow_low_log2", &TensorFit::underflow_low,
          "the smallest scale at which underflow costs no more than the tolerance; 0 where any scale fits")
      .def_ro("overflow_high_log2", &TensorFit::overflow_high,
              "the largest scale at which nothing overflows; 0 where any scale fits")
      .def_prop_ro(
          "window_log2", [](const TensorFit& fit) { return low_and_high(fit.window()); },
          "(low, high) of the scales that fit; None where none does, and where any does");
}

void bind_report(nb::module_& module) {
  nb::class_<TensorReport>(module, "TensorReport", "Counts of a cast of one tensor at scale 1.")
      .def_ro("name", &TensorReport::name)
      .def_prop_ro("elements", [](const TensorReport& t) { return t.counts.elements; })
      .def_ro("zeros", &TensorReport::zeros, "before the cast, of either sign")
      .def_prop_ro(
          "flushed", [](const TensorReport& t) { return t.counts.flushed; },
          "nonzero elements that become zero")
      .def_prop_ro(
          "subnormal", [](const TensorReport& t) { return t.counts.subnormal; },
          "nonzero elements that become subnormal")
      .def_prop_ro(
          "overflow", [](const TensorReport& t) { return t.counts.overflow; },
          "finite elements beyond the largest number")
      .def_ro("nonfinite", &TensorReport::nonfinite, "infinities and NaNs, before the cast")
      .def_prop_ro(
          "max_abs", [](const TensorReport& t) { return shortest(t.max_abs); },
          "largest finite magnitude, as the shortest decimal of the float32")
      .def_ro("lost_energy", &TensorReport::lost_energy, "the flushed elements' share of the sum of squares")
      .def_ro("cosine", &TensorReport::cosine,
              "between the tensor and what the cast leaves; None without a direction")
      .def_ro("fit", &TensorReport::fit);
}

void bind_signs(nb::module_& module) {
  nb::class_<WeightSigns>(module, "WeightSigns", "Signs that tensors are weights and no gradients.")
      .def(nb::init<>())
      .def(
          "look_at",
          [](WeightSigns& self, const TensorReport& tensor, const std::string& name, const std::string& file,
             std::size_t axes) {
            self.look_at({.name = name,
                          .file = file,
                          .axes = axes,
                          .elements = tensor.counts.elements,
                          .lies_around_1 = tensor.lies_around_1});
          },
          nb::arg("tensor"), nb::arg("name"), nb::arg("file"), nb::arg("axes"),
          "A tensor; `file` is where it is from, which may be empty.")
      .def_prop_ro("reason", &WeightSigns::reason,
                   "Why all of them are weights; None without a sign, and where one is called a gradient.")
      .def_prop_ro("are_in_doubt", &WeightSigns::are_in_doubt,
                   "Whether their names are those of parameters, and no sign decides.");
  module.def("say_weights", say_weights, nb::arg("reason"),
             "Words on weights, in place of advice on a loss scale.");
  module.def("say_weights_in_doubt", say_weights_in_doubt,
             "A last line of the advice on tensors that may be weights.");
}

void bind_advised(nb::module_& module) {
  nb::class_<Outlier>(module, "Outlier", "A tensor that the best single scale leaves out.")
      .def_prop_ro("name", [](const Outlier& o) { return o.tensor.name; })
      .def_prop_ro(
          "remedy", [](const Outlier& o) { return std::string(name_of(o.remedy)); },
          "own_scale, bf16_range or fp32_island")
      .def_ro("scale_log2", &Outlier::scale_log2, "for own_scale");
  nb::class_<Advice>(module, "Advice", "Which power-of-two loss scale fits a set of tensors.")
      .def_prop_ro("joint_window_log2", [](const Advice& a) { return low_and_high(a.joint); })
      .def_ro("recommended_scale_log2", &Advice::recommended)
      .def_ro("first_hurt", &Advice::first_hurt, "the tensors that a scale below the window hurts first")
      .def_ro("outliers", &Advice::outliers)
      .def_ro("verdict", &Advice::verdict);
}

}  // namespace

void bind_advice(nb::module_& module) {
  bind_fit(module);
  bind_report(module);
  bind_signs(module);
  bind_advised(module);
  module.def("report", report, nb::arg("name"), nb::arg("array").none(), nb::arg("format"),
             nb::arg("tolerance"), report_documentation);
  module.def("fit", fit, nb::arg("name"), nb::arg("steps"), nb::arg("tolerance"), fit_documentation);
  module.def("advise", advise_all, nb::arg("tensors"), nb::arg("format"), nb::arg("tolerance"),
             nb::arg("headroom"), advise_documentation);
}

}  // namespace halfscope::python
