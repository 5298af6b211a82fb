// halfscope.WhatIf.
#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>

#include <halfscope/stats/what_if.hpp>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

std::string describe(const WhatIf& w) {
  return fmt::format("<WhatIf at 2^{}: {} elements, {} nonzero, {} flushed, {} subnormal, {} overflow>",
                     w.scale_log2, w.elements, w.nonzero, w.flushed, w.subnormal, w.overflow);
}

}  // namespace

void bind_what_if(nb::module_& module) {
  nb::class_<WhatIf>(module, "WhatIf",
                     "What a cast does to the elements of a histogram at one scale: counts.")
      .def_ro("scale_log2", &WhatIf::scale_log2, "log2 of the scale")
      .def_ro("elements", &WhatIf::elements, "all: zeros, infinities and NaNs included")
      .def_ro("nonzero", &WhatIf::nonzero, "finite and not zero before the cast")
      .def_ro("flushed", &WhatIf::flushed, "of those, become zero: in FP16, |scaled| <= 2^-25")
      .def_ro("subnormal", &WhatIf::subnormal, "of those, become a subnormal number")
      .def_ro("overflow", &WhatIf::overflow,
              "of those, round beyond the largest number: in FP16, |scaled| >= 65520")
      .def_prop_ro("flushed_fraction", &WhatIf::flushed_fraction,
                   "flushed / nonzero; 0 where nothing is nonzero")
      .def_prop_ro("subnormal_fraction", &WhatIf::subnormal_fraction, "subnormal / nonzero")
      .def_prop_ro("overflow_fraction", &WhatIf::overflow_fraction, "overflow / nonzero")
      .def(nb::self == nb::self)
      .def("__repr__", [](const WhatIf& w) { return describe(w); });
}

}  // namespace halfscope::python
