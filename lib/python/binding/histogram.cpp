// halfscope.Histogram.
#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>

#include <cmath>

#include <halfscope/core/error.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/scaling/advisor.hpp>
#include <halfscope/stats/what_if.hpp>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"
#include "binding/histogram_record.hpp"
#include "binding/windows.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* histogram_documentation =
    R"doc(Elements per binade [2^e, 2^(e+1)) of |x|, exact: integers that merge in any order.

Histogram(): empty. Histogram(array): of the elements of `array`, as `update` takes it.
format: what `what_if` and `window` are about, "fp16" unless said otherwise; any that `round` knows.)doc";

constexpr const char* update_documentation = R"doc(Adds the elements of `array`, of any shape.

float32, float16, bfloat16 or float64 in CPU memory, and in a GPU's where the package was built with CUDA. float64 is rounded to odd first, which leaves every count and
what-if of a format with at most 22 significand bits exact; beyond float32's range it counts as its largest or
smallest number, not as infinite or zero. Raises TypeError for other types and what is no array, ValueError for an
array in a GPU's memory that is out of reach.)doc";

constexpr const char* what_if_documentation =
    R"doc(Exact counts of a cast of the elements times `scale` to the histogram's format.

scale: a power of two, 2.0**-200 to 2.0**200. Raises ValueError for another one.)doc";

constexpr const char* window_documentation =
    R"doc(The loss scales 2^low to 2^high that fit, as (low, high).

Below low, more than `tolerance` (a share from 0 to 1) of the sum of magnitudes is in elements that are flushed. Above
high at least one overflows. None where no scale fits, and where any does: without a nonzero finite element. Raises
ValueError for another tolerance.)doc";

constexpr const char* merge_documentation =
    R"doc(Adds the counts of another histogram. Raises ValueError where that one is of another format.)doc";

constexpr const char* scaled_documentation =
    R"doc(The histogram of the elements times `scale`, a power of two.

Elements outside float32's binades count in the first or the last of them. Raises ValueError as `what_if`
does.)doc";

constexpr const char* record_documentation =
    R"doc(The counts as a dictionary, with the keys of a line of histograms.jsonl.

first_exponent; counts, pow2, top and subnormal_carry from there on; zeros, negative_zeros, infinities, nans; max_abs,
which histograms.jsonl leaves out; and format, unless that is "fp16".)doc";

constexpr const char* from_record_documentation =
    R"doc(A histogram from such a dictionary, or a line of histograms.jsonl as it stands, loss scale included.

max_abs is 0 and format "fp16" where the record does not have it. Raises ValueError where a key is missing, the format
is unknown or the lists do not fit together.)doc";

constexpr const char* from_bins_documentation =
    R"doc(A histogram from bins that were counted elsewhere, such as on a GPU: int64, one axis, in CPU memory.

kernel/histogram/binned_histogram.hpp defines the bins, which were made at the edges of `format`. Raises ValueError for another number of bins, and for negative
ones.)doc";

constexpr const char* pandas_documentation =
    R"doc(The counts as a data frame: a row per binade, from the first to the last that holds anything.

Index: exponent e, of the binade [2^e, 2^(e+1)). Columns: counts, pow2, top and subnormal_carry, as histograms.jsonl
has them. Zeros, infinities and NaNs are in no binade. Raises ImportError without pandas.)doc";

constexpr const char* binades_documentation =
    R"doc(Counts per binade, (277, 4) int64: row i is the binade of 2^(i-149).

Columns: all; exactly 2^e; those that round to 2^(e+1) with 11 significant bits; the same with 10.)doc";

constexpr const char* numbers_documentation =
    R"doc(All counts as one array, (1113,) int64; all but the last add up over histograms, as over ranks.

The counts of `binades()` row by row; zeros, negative zeros, infinities, NaNs; and the bits of max_abs as a float32.)doc";

/// Adds elements that lie in host memory without gaps, in whatever order; false where they do not.
bool add_where_they_lie(ExponentHistogram& histogram, nb::handle array) {
  const Dlpack imported = import_array(array, "Histogram.update");
  const std::optional<DType> type = float_type(imported);
  if (!type || !in_host_memory(imported) || !is_dense(imported)) return false;
  const nb::gil_scoped_release release;
  add_in_threads(histogram, *type, static_cast<const std::byte*>(imported.data()), imported.size());
  return true;
}

void update(ExponentHistogram& histogram, nb::handle array) {
  if (add_where_they_lie(histogram, array)) return;
  const FloatVec input(array, "Histogram.update", Float64::rounded_to_odd, Where::anywhere);
  const nb::gil_scoped_release release;
  add_in_threads(histogram, input.values());
}

/// log2 of a scale that must be a power of two.
int exponent_of(double scale, const char* function) {
  int exponent = 0;
  if (!(scale > 0) || std::frexp(scale, &exponent) != 0.5 || std::abs(exponent - 1) > 200) {
    throw InvalidArgument(fmt::format("{}: scale {}; give a power of two from 2.0**-200 to 2.0**200, as 1024",
                                      function, scale));
  }
  return exponent - 1;
}

nb::object binades(const ExponentHistogram& histogram) {
  constexpr std::size_t rows = highest_binade - lowest_binade + 1, columns = 4;
  auto table = std::make_unique<std::int64_t[]>(rows * columns);
  std::int64_t* next = table.get();
  for (int exponent = lowest_binade; exponent <= highest_binade; ++exponent) {
    const BinadeCounts binade = histogram.binade(exponent);
    for (const std::int64_t count :
         {binade.all, binade.at_power_of_two, binade.rounds_to_overflow, binade.rounds_to_normal})
      *next++ = count;
  }
  return to_array(std::move(table), {rows, columns}, nb::none());
}

nb::object to_pandas(nb::handle histogram) {
  return nb::module_::import_("halfscope.results.dataframes").attr("of_histogram")(histogram);
}

ExponentHistogram scaled(const ExponentHistogram& histogram, double scale) {
  const int moved = exponent_of(scale, "scaled");
  HistogramCounts counts = histogram.counts();
  counts.binades = {};
  counts.max_abs = std::ldexp(histogram.max_abs(), moved);
  for (int exponent = lowest_binade; exponent <= highest_binade; ++exponent) {
    const BinadeCounts from = histogram.binade(exponent);
    const int target = std::clamp(exponent + moved, lowest_binade, highest_binade);
    BinadeCounts& to = counts.binades.at(static_cast<std::size_t>(target - lowest_binade));
    to = {to.all + from.all, to.at_power_of_two + from.at_power_of_two,
          to.rounds_to_overflow + from.rounds_to_overflow, to.rounds_to_normal + from.rounds_to_normal};
  }
  return ExponentHistogram(counts, histogram.format());
}

std::optional<std::pair<int, int>> window(const ExponentHistogram& histogram, double tolerance) {
  return low_and_high(fit_tensor("", histogram, {.tolerance = checked_tolerance(tolerance)}).window());
}

ExponentHistogram merged(const ExponentHistogram& one, const ExponentHistogram& other) {
  ExponentHistogram both = one;
  both.merge(other);
  return both;
}

/// For pickle and copy: everything, the format of the edges too.
nb::tuple state_of(const ExponentHistogram& histogram) {
  return nb::make_tuple(to_string(histogram.format()), record_of(histogram));
}

void restore(ExponentHistogram& histogram, const nb::tuple& state) {
  if (state.size() != 2) throw InvalidArgument("Histogram: the pickled state is of another version");
  const FloatFormat format = parse_format(nb::cast<std::string>(state[0]));
  new (&histogram) ExponentHistogram(histogram_of(state[1]).counts(), format);
}

std::string describe(const ExponentHistogram& h) {
  return fmt::format("<Histogram of {} elements: {} zeros, {} infinities, {} NaNs, max_abs {:g}>",
                     h.elements(), h.zeros(), h.infinities(), h.nans(), h.max_abs());
}

}  // namespace

void bind_histogram(nb::module_& module) {
  using Self = ExponentHistogram;
  nb::class_<Self>(module, "Histogram", histogram_documentation)
      .def(
          "__init__", [](Self* self, const std::string& format) { new (self) Self(parse_format(format)); },
          nb::kw_only(), nb::arg("format") = "fp16")
      .def(
          "__init__",
          [](Self* self, nb::handle array, const std::string& format) {
            update(*new (self) Self(parse_format(format)), array);
          },
          nb::arg("array").none(), nb::kw_only(), nb::arg("format") = "fp16")
      .def("update", update, nb::arg("array").none(), update_documentation)
      .def(
          "merge", [](Self& self, const Self& other) { self.merge(other); }, nb::arg("other"),
          merge_documentation)
      .def(
          "what_if",
          [](const Self& self, double scale) { return what_if(self, exponent_of(scale, "what_if")); },
          nb::arg("scale") = 1.0, what_if_documentation)
      .def("window", window, nb::arg("tolerance") = AdvisorOptions{}.tolerance, window_documentation)
      .def("scaled", scaled, nb::arg("scale"), scaled_documentation)
      .def("binades", binades, nb::sig("def binades(self) -> numpy.ndarray"), binades_documentation)
      .def("to_pandas", to_pandas, nb::sig("def to_pandas(self) -> pandas.DataFrame"), pandas_documentation)
      .def("record", record_of, nb::sig("def record(self) -> dict[str, object]"), record_documentation)
      .def_static("from_record", histogram_of, nb::arg("record").none(),
                  nb::sig("def from_record(record: Mapping[str, object]) -> Histogram"),
                  from_record_documentation)
      .def_static("from_bins", histogram_of_bins, nb::arg("bins"), nb::kw_only(), nb::arg("format") = "fp16",
                  nb::sig("def from_bins(bins: numpy.ndarray, *, format: str = 'fp16') -> Histogram"),
                  from_bins_documentation)
      .def("numbers", numbers_of, nb::sig("def numbers(self) -> numpy.ndarray"), numbers_documentation)
      .def_static("from_numbers", histogram_of_numbers, nb::arg("numbers"), nb::kw_only(),
                  nb::arg("format") = "fp16",
                  nb::sig("def from_numbers(numbers: numpy.ndarray, *, format: str = 'fp16') -> Histogram"),
                  "A histogram for `format` from such an array. Raises ValueError for another size.")
      .def_prop_ro(
          "format", [](const Self& self) { return to_string(self.format()); },
          "At whose edges the counts were made.")
      .def_prop_ro("elements", &Self::elements, "All that was added.")
      .def_prop_ro("nonzero", &Self::nonzero, "Finite elements other than zero.")
      .def_prop_ro("zeros", &Self::zeros, "Zeros of either sign.")
      .def_prop_ro("negative_zeros", &Self::negative_zeros)
      .def_prop_ro("infinities", &Self::infinities)
      .def_prop_ro("nans", &Self::nans)
      .def_prop_ro("max_abs", &Self::max_abs, "Largest finite magnitude; 0 where there is none.")
      .def(nb::self == nb::self)
      .def("__add__", merged, nb::is_operator(), "The counts of both, as `merge` adds them.")
      .def("__copy__", [](const Self& self) { return Self(self); })
      .def(
          "__deepcopy__", [](const Self& self, nb::handle) { return Self(self); }, nb::arg("memo"))
      .def("__getstate__", state_of, nb::sig("def __getstate__(self) -> tuple[str, dict[str, object]]"))
      .def("__setstate__", restore,
           nb::sig("def __setstate__(self, state: tuple[str, dict[str, object]], /) -> None"))
      .def("__repr__", [](const Self& h) { return describe(h); });
}

}  // namespace halfscope::python
