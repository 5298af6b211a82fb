// Histograms as dictionaries with the keys of histograms.jsonl.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope::python {

using Bins =
    nanobind::ndarray<const std::int64_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

/// The members of io/json/histogram_json.hpp, and max_abs.
[[nodiscard]] nanobind::dict record_of(const ExponentHistogram& histogram);

/// Throws InvalidArgument where a key is missing or is not what `record_of` writes.
[[nodiscard]] ExponentHistogram histogram_of(nanobind::handle record);

/// From the bins of kernel/histogram/binned_histogram.hpp. Throws InvalidArgument for any other numbers.
[[nodiscard]] ExponentHistogram histogram_of_bins(const Bins& bins);

}  // namespace halfscope::python
