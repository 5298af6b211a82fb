// How fast exponent histograms are counted; memcpy is a yardstick only, since a histogram writes next to
// nothing.
#include <halfscope/kernel/histogram/histogram.hpp>

#include "tests/benchmark/against_memcpy.hpp"

namespace halfscope {
namespace {

[[maybe_unused]] const bool registered = [] {
  register_against_memcpy("histogram", [](std::span<const float> in, std::span<float>) {
    HistogramCounts counts;
    histogram(in, counts);
    benchmark::DoNotOptimize(counts);
  });
  return true;
}();

}  // namespace
}  // namespace halfscope
