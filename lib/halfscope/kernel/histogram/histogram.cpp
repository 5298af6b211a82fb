// The histogram on the active device, with the instruction set in use.
#include <halfscope/kernel/histogram/histogram.hpp>

#include <halfscope/kernel/histogram/detail/histogram_simd.hpp>

namespace halfscope {

void histogram(std::span<const float> values, HistogramCounts& counts, const BinadeEdges& edges) {
  if (active_device() == Device::cuda) return cuda::histogram(values, counts, edges);
  dispatch_isa([&]<Isa isa>() { histogram_isa<isa>(values.data(), values.size(), edges, counts); });
}

}  // namespace halfscope
