// halfscope.lost_updates and halfscope.update_ratios.
#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include <halfscope/stats/lost_updates.hpp>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* lost_documentation =
    R"doc(Which weight updates vanish when they are added to weights of a format.

weights, updates: of one shape, in any order in memory; the optimizer adds `updates` to `weights`.
quantizer: the format that the weights would be stored in.

An update is lost where it is not zero and round(round(w) + dw) == round(w). Raises ValueError where the shapes
differ; TypeError as `round` does.)doc";

constexpr const char* ratio_documentation =
    R"doc(The histogram of |dw| / |w| of the elements in which neither is zero.

weights, updates: of one shape, in any order in memory. format: of the histogram. Raises ValueError where the shapes
differ.)doc";

struct Pair {
  FloatVec weights, updates;

  Pair(nb::handle first, nb::handle second, std::string_view function)
      : weights(first, "weights", Float64::rounded_to_odd, Where::anywhere),
        updates(second, "updates", Float64::rounded_to_odd, Where::anywhere) {
    require_same_device(weights, updates, function);
    if (weights.shape() == updates.shape()) return;
    throw InvalidArgument(
        fmt::format("{}: weights of shape ({}) and updates of shape ({}); give an update for each weight, in "
                    "the same shape",
                    function, fmt::join(weights.shape(), ", "), fmt::join(updates.shape(), ", ")));
  }
};

UpdateCounters lost_updates(nb::handle weights, nb::handle updates, const std::string& quantizer) {
  const Quantizer parsed = parse_quantizer(quantizer);
  const Pair pair(weights, updates, "lost_updates");
  const nb::gil_scoped_release release;
  return count_lost_updates({.tensor = "weights"}, parsed, pair.weights.values(), pair.updates.values());
}

ExponentHistogram ratios(nb::handle weights, nb::handle updates, const std::string& format) {
  const FloatFormat parsed = parse_format(format);
  const Pair pair(weights, updates, "update_ratios");
  const nb::gil_scoped_release release;
  return update_ratios(pair.weights.values(), pair.updates.values(), parsed);
}

using State = std::tuple<std::int64_t, std::int64_t, std::int64_t, double>;

State state_of(const UpdateCounters& counters) {
  return {counters.elements, counters.nonzero, counters.lost, counters.applied_over_intended};
}

void restore(UpdateCounters& counters, const State& state) {
  const auto& [elements, nonzero, lost, applied_over_intended] = state;
  new (&counters) UpdateCounters{.tensor = "weights",
                                 .elements = elements,
                                 .nonzero = nonzero,
                                 .lost = lost,
                                 .applied_over_intended = applied_over_intended};
}

/// The intended sums are not kept: updates that are not zero stand for them in the ratio's mean.
UpdateCounters sum(const UpdateCounters& one, const UpdateCounters& other) {
  const std::int64_t nonzero = one.nonzero + other.nonzero;
  const double mean = (one.applied_over_intended * static_cast<double>(one.nonzero) +
                       other.applied_over_intended * static_cast<double>(other.nonzero)) /
                      static_cast<double>(std::max<std::int64_t>(nonzero, 1));
  return {.tensor = one.tensor,
          .elements = one.elements + other.elements,
          .nonzero = nonzero,
          .lost = one.lost + other.lost,
          .applied_over_intended = nonzero > 0 ? mean : 1};
}

std::string describe(const UpdateCounters& counters) {
  return fmt::format("<UpdateCounters of {} elements: {} nonzero, {} lost, applied_over_intended {:g}>",
                     counters.elements, counters.nonzero, counters.lost, counters.applied_over_intended);
}

}  // namespace

void bind_updates(nb::module_& module) {
  nb::class_<UpdateCounters>(module, "UpdateCounters",
                             "Counts of the lost and moved updates of one parameter.")
      .def(
          "__init__",
          [](UpdateCounters* self, std::int64_t elements, std::int64_t nonzero, std::int64_t lost,
             double applied_over_intended) {
            new (self) UpdateCounters{.tensor = "weights",
                                      .elements = elements,
                                      .nonzero = nonzero,
                                      .lost = lost,
                                      .applied_over_intended = applied_over_intended};
          },
          nb::kw_only(), nb::arg("elements"), nb::arg("nonzero"), nb::arg("lost"),
          nb::arg("applied_over_intended") = 1.0, "From counts that were made elsewhere, such as on a GPU.")
      .def_ro("elements", &UpdateCounters::elements)
      .def_ro("nonzero", &UpdateCounters::nonzero, "updates that are not zero")
      .def_ro("lost", &UpdateCounters::lost, "nonzero ones that change nothing")
      .def_ro("applied_over_intended", &UpdateCounters::applied_over_intended,
              "sum of |applied| / sum of |intended|: below 1, the updates shrink")
      .def("__add__", sum, nb::is_operator(),
           "The counts of both; applied_over_intended is the mean of both, weighted by nonzero.")
      .def(
          "__eq__",
          [](const UpdateCounters& one, const UpdateCounters& other) {
            return state_of(one) == state_of(other);
          },
          nb::is_operator())
      .def("__copy__", [](const UpdateCounters& self) { return UpdateCounters(self); })
      .def(
          "__deepcopy__", [](const UpdateCounters& self, nb::handle) { return UpdateCounters(self); },
          nb::arg("memo"))
      .def("__getstate__", state_of)
      .def("__setstate__", restore)
      .def("__repr__", describe);
  module.def("lost_updates", lost_updates, nb::arg("weights").none(), nb::arg("updates").none(),
             nb::arg("quantizer") = "fp16", lost_documentation);
  module.def("update_ratios", ratios, nb::arg("weights").none(), nb::arg("updates").none(), nb::kw_only(),
             nb::arg("format") = "fp16", ratio_documentation);
}

}  // namespace halfscope::python
