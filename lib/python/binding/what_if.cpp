// halfscope.WhatIf.
#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>

#include <halfscope/core/error.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/stats/what_if.hpp>
#include <vector>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

using BinadeTable = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

constexpr const char* of_binades_documentation =
    R"doc(Exact counts of a cast to `format` of the elements of these binades times 2^scale_log2.

binades: counts per binade as Histogram.binades has them, (binades, 4) int64, made at the edges of `format`; row i is
the binade of 2^(first_exponent + i), which may lie outside of float32's. Raises ValueError for an array of another
shape or type, and for counts that are negative or, in a column beside the first, more than there.)doc";

std::vector<BinadeCounts> counts_of(const BinadeTable& table) {
  if (table.ndim() != 2 || table.shape(1) != 4 || table.dtype() != nb::dtype<std::int64_t>())
    throw InvalidArgument("WhatIf.of_binades: binades: give an int64 array of shape (binades, 4)");
  std::vector<BinadeCounts> counts;
  counts.reserve(table.shape(0));
  for (auto row = static_cast<const std::int64_t*>(table.data()); counts.size() < table.shape(0); row += 4) {
    for (int column = 0; column < 4; ++column) {
      if (row[column] < 0 || row[column] > row[0]) {
        throw InvalidArgument(fmt::format("WhatIf.of_binades: binades[{}, {}]: {} of {} elements",
                                          counts.size(), column, row[column], row[0]));
      }
    }
    counts.push_back({row[0], row[1], row[2], row[3]});
  }
  return counts;
}

WhatIf of_binades(int first_exponent, const BinadeTable& table, int scale_log2, const std::string& format) {
  const std::vector<BinadeCounts> counts = counts_of(table);
  return what_if(BinadeRange{first_exponent, counts}, parse_format(format), scale_log2);
}

std::string describe(const WhatIf& w) {
  return fmt::format("<WhatIf at 2^{}: {} elements, {} nonzero, {} flushed, {} subnormal, {} overflow>",
                     w.scale_log2, w.elements, w.nonzero, w.flushed, w.subnormal, w.overflow);
}

}  // namespace

void bind_what_if(nb::module_& module) {
  nb::class_<WhatIf>(module, "WhatIf", "Counts of a cast of the elements of a histogram at one scale.")
      .def_static(
          "of_binades", of_binades, nb::arg("first_exponent"), nb::arg("binades"), nb::arg("scale_log2") = 0,
          nb::kw_only(), nb::arg("format") = "fp16",
          nb::sig("def of_binades(first_exponent: int, binades: numpy.ndarray, scale_log2: int = 0, *, "
                  "format: str = 'fp16') -> WhatIf"),
          of_binades_documentation)
      .def_ro("scale_log2", &WhatIf::scale_log2, "log2 of the scale")
      .def_ro("elements", &WhatIf::elements, "all: zeros, infinities and NaNs included")
      .def_ro("nonzero", &WhatIf::nonzero, "finite and not zero before the cast")
      .def_ro("flushed", &WhatIf::flushed, "nonzero ones that become zero: in FP16, |scaled| <= 2^-25")
      .def_ro("subnormal", &WhatIf::subnormal, "nonzero ones that become a subnormal number")
      .def_ro("overflow", &WhatIf::overflow,
              "nonzero ones that round beyond the largest number: in FP16, |scaled| >= 65520")
      .def_prop_ro("flushed_fraction", &WhatIf::flushed_fraction,
                   "flushed / nonzero; 0 where nothing is nonzero")
      .def_prop_ro("subnormal_fraction", &WhatIf::subnormal_fraction, "subnormal / nonzero")
      .def_prop_ro("overflow_fraction", &WhatIf::overflow_fraction, "overflow / nonzero")
      .def(nb::self == nb::self)
      .def("__repr__", [](const WhatIf& w) { return describe(w); });
}

}  // namespace halfscope::python
