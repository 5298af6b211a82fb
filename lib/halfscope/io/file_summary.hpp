// Summaries of the tensors of a file, read in blocks by all threads; memory does not grow with the file.
#pragma once

#include <functional>
#include <span>

#include <halfscope/io/tensor_file.hpp>
#include <halfscope/stats/tensor_summary.hpp>

namespace halfscope {

/// Takes what was found in tensor `index` of a file.
using SummarySink = std::function<void(std::size_t index, const TensorSummary& summary)>;
/// Hears how many more elements have been read.
using ElementProgress = std::function<void(std::int64_t elements)>;

/// Summaries the tensors `chosen`, ascending indices, for `format`, and hands each to `sink` in that order.
/// The summaries are the same for any number of threads. Throws InvalidArgument where the file turns out to
/// be damaged.
void summarise_tensors(const TensorFile& file, std::span<const std::size_t> chosen, const FloatFormat& format,
                       const SummarySink& sink, const ElementProgress& progress = {});

}  // namespace halfscope
