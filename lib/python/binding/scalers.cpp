// halfscope.LossScaler and the table of loss scalers.
#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cmath>

#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/stats/what_if.hpp>

#include "binding/bindings.hpp"
#include "binding/scaler.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* scaler_documentation =
    R"doc(A loss scaler as a state machine: ask it for `scale`, tell it of the step's gradients with `update`.

name: one of `halfscope list scalers`, such as "dynamic" (PyTorch's GradScaler), "megatron", "headroom"; or a number,
which is a constant scale.
options: numbers under the names that `halfscope list scalers` gives, each with the scaler's own default, such as
LossScaler("dynamic", growth_interval=500).

Raises ValueError for an unknown name, an option that the scaler does not have, and a value out of its range.)doc";

constexpr const char* scaler_update_documentation =
    R"doc(Takes note of a step; True where its weight update must be skipped.

Describes the weight gradients, all of them together and times the scale: `finite`, whether every element is
after rounding to FP16; `max_abs`, the largest magnitude after rounding; `histogram`, of the elements before rounding,
which alone is enough. Without max_abs or finite, each follows from the others.

Raises ValueError where what the scaler looks at (see `needs`) is not given; RuntimeError where its rule is to end the
run.)doc";

constexpr const char* table_documentation =
    "The loss scalers by name: a summary, what they look at, whether a trace can be replayed through them, "
    "and "
    "their options with the defaults.";

constexpr const char* state_documentation = "All that it remembers, by name.";
constexpr const char* load_documentation =
    "Goes on from what `state` gave. Raises ValueError where the names are not this scaler's.";

/// The gradients of `update`, as the scaler wants them.
StepGradients gradients_of(std::optional<bool> finite, std::optional<double> max_abs,
                           const ExponentHistogram* histogram) {
  StepGradients gradients{.histogram = histogram};
  if (histogram != nullptr) {
    if (histogram->format() != fp16) throw InvalidArgument("LossScaler.update: give a histogram of FP16");
    gradients.finite = histogram->infinities() + histogram->nans() + what_if(*histogram, 0).overflow == 0;
    gradients.max_abs = round(histogram->max_abs(), Quantizer{fp16});
  }
  if (max_abs) {
    if (*max_abs < 0)
      throw InvalidArgument(fmt::format("LossScaler.update: max_abs = {} is negative", *max_abs));
    gradients.max_abs = static_cast<float>(*max_abs);
    gradients.finite = *max_abs < overflow_limit(fp16);  // false for NaN
  }
  if (finite) gradients.finite = *finite;
  return gradients;
}

bool update_scaler(NamedScaler& self, std::optional<bool> finite, std::optional<double> max_abs,
                   const ExponentHistogram* histogram) {
  const GradientDetail needs = self.scaler->needs();
  const bool empty = histogram != nullptr && histogram->nonzero() == 0;
  const bool knows_max = max_abs || empty || (histogram != nullptr && histogram->max_abs() > 0);
  const bool known = finite || max_abs || histogram != nullptr;
  const StepGradients gradients = gradients_of(finite, max_abs, histogram);
  if ((needs >= GradientDetail::finite && !known) ||
      (needs == GradientDetail::max_abs && gradients.finite && !knows_max) ||
      (needs == GradientDetail::histogram && gradients.finite && histogram == nullptr)) {
    throw InvalidArgument(fmt::format("LossScaler.update: {} looks at {}= of the gradients; give it",
                                      self.name, name_of(needs)));
  }
  return self.scaler->update(gradients);
}

nb::dict state(NamedScaler& self) {
  nb::dict numbers;
  for (const ScalerNumber& number : self.scaler->numbers()) numbers[number.name.c_str()] = *number.value;
  return numbers;
}

void load_state(NamedScaler& self, const std::map<std::string, double>& given) {
  const std::vector<ScalerNumber> numbers = self.scaler->numbers();
  for (const ScalerNumber& number : numbers) {
    if (!given.contains(number.name)) {
      throw InvalidArgument(fmt::format("LossScaler.load_state: it lacks '{}'", number.name));
    }
  }
  if (given.size() != numbers.size()) {
    throw InvalidArgument(
        fmt::format("LossScaler.load_state: {} numbers; {} has {}", given.size(), self.name, numbers.size()));
  }
  for (const ScalerNumber& number : numbers) *number.value = given.at(number.name);
}

nb::dict to_dict(const ScalerSettings& settings) {
  nb::dict options;
  for (const auto& [name, value] : settings) options[name.c_str()] = value;
  return options;
}

nb::list scaler_table_of() {
  nb::list table;
  for (const ScalerEntry& entry : scaler_table) {
    nb::dict row;
    const NamedScaler scaler = make_named_scaler(std::string(entry.name), {});
    row["scaler"] = entry.name;
    row["summary"] = entry.summary;
    row["needs"] = name_of(scaler.scaler->needs());
    row["replays"] = !scaler.scaler->layerwise();
    row["options"] = to_dict(scaler.options);
    table.append(row);
  }
  return table;
}

/// A name, or a number.
std::string name_from(nb::handle given) {
  if (nb::isinstance<nb::str>(given) || nb::isinstance<nb::float_>(given) ||
      nb::isinstance<nb::int_>(given)) {
    return nb::cast<std::string>(nb::str(given));
  }
  throw nb::type_error("LossScaler: give a name or a number");
}

}  // namespace

void bind_scalers(nb::module_& module) {
  nb::class_<NamedScaler>(module, "LossScaler", scaler_documentation)
      .def(
          "__init__",
          [](NamedScaler* self, nb::handle name, const nb::kwargs& options) {
            new (self) NamedScaler(make_named_scaler(name_from(name), settings_of(options)));
          },
          nb::arg("name").none(), nb::arg("options"),
          nb::sig("def __init__(self, name: str | float, **options: float) -> None"))
      .def_ro("name", &NamedScaler::name)
      .def_prop_ro(
          "scale", [](const NamedScaler& self) { return self.scaler->scale(); },
          "The factor for the next step.")
      .def_prop_ro(
          "needs", [](const NamedScaler& self) { return name_of(self.scaler->needs()); },
          "The part of the gradients that `update` reads: none, finite, max_abs or histogram.")
      .def_prop_ro(
          "options", [](const NamedScaler& self) { return to_dict(self.options); },
          nb::for_getter(nb::sig("def options(self, /) -> dict[str, float]")), "Every option with its value.")
      .def("update", update_scaler, nb::kw_only(), nb::arg("finite") = nb::none(),
           nb::arg("max_abs") = nb::none(), nb::arg("histogram") = nb::none(), scaler_update_documentation)
      .def("state", state, nb::sig("def state(self) -> dict[str, float]"), state_documentation)
      .def("load_state", load_state, nb::arg("state"), load_documentation)
      .def("__repr__", [](const NamedScaler& self) {
        return fmt::format("<LossScaler {}: scale {:g}>", self.name, self.scaler->scale());
      });
  module.def("scaler_table", scaler_table_of, nb::sig("def scaler_table() -> list[dict[str, object]]"),
             table_documentation);
}

}  // namespace halfscope::python
