// Histograms as dictionaries with the keys of histograms.jsonl.
#pragma once

#include <nanobind/nanobind.h>

#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope::python {

/// The binades from the first to the last that hold anything, and what is in no binade.
[[nodiscard]] nanobind::dict record_of(const ExponentHistogram& histogram);

/// Throws RequestError where a key is missing or is not what `record_of` writes.
[[nodiscard]] ExponentHistogram histogram_of(nanobind::handle record);

}  // namespace halfscope::python
