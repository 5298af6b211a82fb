// Exponent histograms as flat bins: what a device counts, and keeps until somebody wants to read it.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/kernel/histogram/histogram.hpp>

namespace halfscope {

/// Where in the bins what is counted. A number's class is 0, plus 1 where its fraction is 0, 2 where it
/// reaches the first of the two edges (see BinadeEdges) and 1 more where it reaches the second.
namespace binned {
inline constexpr std::size_t classes = 4;
/// classes * exponent field + class; those of field 0 hold zeros alone.
inline constexpr std::size_t subnormals = classes * 256;
/// subnormals + classes * (floor(log2 |x|) + 149) + class of the fraction that x has once it is normalised.
inline constexpr std::size_t subnormal_binades = 23;
inline constexpr std::size_t negative_zeros = subnormals + classes * subnormal_binades;
/// The bits of the largest finite magnitude: the one that is no count.
inline constexpr std::size_t max_abs = negative_zeros + 1;
inline constexpr std::size_t size = max_abs + 1;
}  // namespace binned

/// Adds what `bins`, binned::size numbers in host memory, hold to `counts`. Throws InvalidArgument for
/// another size.
void add_bins_to(HistogramCounts& counts, std::span<const std::int64_t> bins, const BinadeEdges& edges);

/// Adds `counts`, which were made with these edges, to such bins: what add_bins_to reads from them.
void add_to_bins(std::span<std::int64_t> bins, const HistogramCounts& counts, const BinadeEdges& edges);

namespace cuda {

/// Queues: adds `values` to `bins`, binned::size numbers; both on the device.
void queue_histogram(std::span<const float> values, std::span<std::int64_t> bins, const BinadeEdges& edges);

/// Queues the same of |updates[i]| / |weights[i]| of the elements in which neither is zero.
void queue_ratio_histogram(std::span<const float> weights, std::span<const float> updates,
                           std::span<std::int64_t> bins, const BinadeEdges& edges);

}  // namespace cuda
}  // namespace halfscope
