// Histograms as dictionaries with the keys of histograms.jsonl.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope::python {

using Bins =
    nanobind::ndarray<const std::int64_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

/// The members of io/json/histogram_json.hpp, max_abs, and `format` unless that is fp16.
[[nodiscard]] nanobind::dict record_of(const ExponentHistogram& histogram);

/// Throws InvalidArgument where a key is missing or is not what `record_of` writes.
[[nodiscard]] ExponentHistogram histogram_of(nanobind::handle record);

/// From the bins of kernel/histogram/binned_histogram.hpp, made at the edges of `format`. Throws
/// InvalidArgument for any other numbers.
[[nodiscard]] ExponentHistogram histogram_of_bins(const Bins& bins, const std::string& format);

/// Counts of a histogram as one array of int64: four of each binade, zeros, negative zeros, infinities, NaNs,
/// and the bits of max_abs.
inline constexpr std::size_t histogram_numbers = 4 * (highest_binade - lowest_binade + 1) + 5;
[[nodiscard]] nanobind::object numbers_of(const ExponentHistogram& histogram);
/// A histogram for `format` from such an array. Throws InvalidArgument for another size.
[[nodiscard]] ExponentHistogram histogram_of_numbers(const Bins& numbers, const std::string& format);

}  // namespace halfscope::python
