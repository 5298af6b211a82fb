// The histogram's loop, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/detail/dispatch.hpp>
#include <halfscope/kernel/histogram/histogram.hpp>

namespace halfscope {

/// `histogram` compiled for one instruction set.
template <Isa isa>
void histogram_isa(const float* values, std::size_t count, const BinadeEdges& edges, HistogramCounts& counts);
template <>
void histogram_isa<Isa::baseline>(const float*, std::size_t, const BinadeEdges&, HistogramCounts&);
template <>
void histogram_isa<Isa::avx2>(const float*, std::size_t, const BinadeEdges&, HistogramCounts&);
template <>
void histogram_isa<Isa::avx512>(const float*, std::size_t, const BinadeEdges&, HistogramCounts&);

}  // namespace halfscope
