// Confidence intervals, for halfscope.torch.ablate.
#include <halfscope/stats/confidence.hpp>

#include <nanobind/stl/vector.h>

#include <halfscope/core/error.hpp>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;

void bind_confidence(nb::module_& module) {
  module.def(
      "confidence_95",
      [](const std::vector<double>& values) {
        if (values.size() < 2) throw InvalidArgument("confidence_95: give two values or more");
        return confidence_95(values);
      },
      nb::arg("values"), nb::sig("def confidence_95(values: Sequence[float]) -> float"),
      "Half the width of the two-sided 95 % Student interval of the values' mean. Raises ValueError for "
      "fewer than two.");
}

}  // namespace halfscope::python
