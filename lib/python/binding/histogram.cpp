// halfscope.Histogram and halfscope.WhatIf.
#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>

#include <cmath>

#include <halfscope/core/error.hpp>
#include <halfscope/stats/what_if.hpp>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* histogram_documentation =
    R"doc(Elements per binade [2^e, 2^(e+1)) of |x|, exact: integers that merge in any order.

Histogram(): empty. Histogram(array): of the elements of `array`.)doc";

constexpr const char* update_documentation = R"doc(Adds the elements of `array`, of any shape.

float32, float16 or bfloat16 in CPU memory. Raises TypeError and ValueError as `round` does.)doc";

constexpr const char* what_if_documentation =
    R"doc(What a cast to FP16 would do to the elements times `scale`: exact counts.

scale: a power of two, 2.0**-200 to 2.0**200. Raises ValueError for another one.)doc";

constexpr const char* pandas_documentation =
    R"doc(The counts as a data frame: a row per binade, from the first to the last
that holds anything.

Index: exponent e, of the binade [2^e, 2^(e+1)). Columns: counts, pow2, top and subnormal_carry, as histograms.jsonl
has them. Zeros, infinities and NaNs are in no binade.)doc";

constexpr const char* binades_documentation =
    R"doc(Counts per binade, (277, 4) int64: row i is the binade of 2^(i-149).

Columns: all; exactly 2^e; those that round to 2^(e+1) with 11 significant bits; the same with 10.)doc";

void update(ExponentHistogram& histogram, nb::handle array) {
  const Floats input(array, "Histogram.update");
  const nb::gil_scoped_release release;
  histogram.add(input.values());
}

/// log2 of a scale that must be a power of two.
int exponent_of(double scale) {
  int exponent = 0;
  if (!(scale > 0) || std::frexp(scale, &exponent) != 0.5 || std::abs(exponent - 1) > 200) {
    throw RequestError(
        fmt::format("what_if: scale {}; give a power of two from 2.0**-200 to 2.0**200, as 1024", scale));
  }
  return exponent - 1;
}

nb::object binades(const ExponentHistogram& histogram) {
  constexpr std::size_t rows = highest_binade - lowest_binade + 1, columns = 4;
  auto table = std::make_unique<std::int64_t[]>(rows * columns);
  std::int64_t* next = table.get();
  for (int exponent = lowest_binade; exponent <= highest_binade; ++exponent) {
    const BinadeCounts binade = histogram.binade(exponent);
    for (const std::int64_t count : {binade.all, binade.pow2, binade.top, binade.ts}) *next++ = count;
  }
  std::int64_t* data = table.get();
  const nb::capsule owner(table.release(),
                          [](void* memory) noexcept { delete[] static_cast<std::int64_t*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, std::int64_t>(data, {rows, columns}, owner));
}

/// The rows of `binades` from the first to the last that holds anything.
nb::object to_pandas(const ExponentHistogram& histogram) {
  int first = lowest_binade, last = highest_binade;
  while (first <= last && histogram.count(first) == 0) ++first;
  while (last > first && histogram.count(last) == 0) --last;
  const nb::module_ pandas = nb::module_::import_("pandas");
  const nb::object index =
      pandas.attr("RangeIndex")(lowest_binade, highest_binade + 1, nb::arg("name") = "exponent");
  const nb::object frame = pandas.attr("DataFrame")(
      binades(histogram), nb::arg("index") = index,
      nb::arg("columns") = nb::make_tuple("counts", "pow2", "top", "subnormal_carry"));
  return frame.attr("loc")[nb::slice(nb::int_(first), nb::int_(last), nb::none())];
}

std::string describe(const ExponentHistogram& h) {
  return fmt::format("<Histogram of {} elements: {} zeros, {} infinities, {} NaNs, max_abs {:g}>",
                     h.elements(), h.zeros(), h.infinities(), h.nans(), h.max_abs());
}

std::string describe(const WhatIf& w) {
  return fmt::format("<WhatIf at 2^{}: {} elements, {} nonzero, {} flushed, {} subnormal, {} overflow>",
                     w.scale_log2, w.elements, w.nonzero, w.flushed, w.subnormal, w.overflow);
}

void bind_what_if(nb::module_& module) {
  nb::class_<WhatIf>(module, "WhatIf",
                     "What a cast to FP16 does to the elements of a histogram at one scale: counts.")
      .def_ro("scale_log2", &WhatIf::scale_log2, "log2 of the scale")
      .def_ro("elements", &WhatIf::elements, "all: zeros, infinities and NaNs included")
      .def_ro("nonzero", &WhatIf::nonzero, "finite and not zero before the cast")
      .def_ro("flushed", &WhatIf::flushed, "of those, become zero: |scaled| <= 2^-25")
      .def_ro("subnormal", &WhatIf::subnormal, "of those, become a subnormal number")
      .def_ro("overflow", &WhatIf::overflow, "of those, become infinite: |scaled| >= 65520")
      .def_prop_ro("flushed_fraction", &WhatIf::flushed_fraction,
                   "flushed / nonzero; 0 where nothing is nonzero")
      .def_prop_ro("subnormal_fraction", &WhatIf::subnormal_fraction, "subnormal / nonzero")
      .def_prop_ro("overflow_fraction", &WhatIf::overflow_fraction, "overflow / nonzero")
      .def("__repr__", [](const WhatIf& w) { return describe(w); });
}

}  // namespace

void bind_histogram(nb::module_& module) {
  bind_what_if(module);
  nb::class_<ExponentHistogram>(module, "Histogram", histogram_documentation)
      .def(nb::init<>())
      .def(
          "__init__",
          [](ExponentHistogram* self, nb::handle array) { update(*new (self) ExponentHistogram, array); },
          nb::arg("array").none())
      .def("update", update, nb::arg("array").none(), update_documentation)
      .def("merge", &ExponentHistogram::merge, nb::arg("other"), "Adds the counts of another histogram.")
      .def(
          "what_if",
          [](const ExponentHistogram& self, double scale) { return what_if(self, exponent_of(scale)); },
          nb::arg("scale") = 1.0, what_if_documentation)
      .def("binades", binades, binades_documentation)
      .def("to_pandas", to_pandas, pandas_documentation)
      .def_prop_ro("elements", &ExponentHistogram::elements, "All that was added.")
      .def_prop_ro("nonzero", &ExponentHistogram::nonzero, "Finite elements other than zero.")
      .def_prop_ro("zeros", &ExponentHistogram::zeros, "Zeros of either sign.")
      .def_prop_ro("negative_zeros", &ExponentHistogram::negative_zeros)
      .def_prop_ro("infinities", &ExponentHistogram::infinities)
      .def_prop_ro("nans", &ExponentHistogram::nans)
      .def_prop_ro("max_abs", &ExponentHistogram::max_abs, "Largest finite magnitude; 0 where there is none.")
      .def(nb::self == nb::self)
      .def("__repr__", [](const ExponentHistogram& h) { return describe(h); });
}

}  // namespace halfscope::python
