// The energy histogram's loop, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/detail/dispatch.hpp>
#include <halfscope/kernel/histogram/energy_histogram.hpp>

namespace halfscope {

/// Adds numbers to `found.tables`, which must have room for them, and FP32 subnormals to the counts.
template <Isa isa>
void energy_histogram_isa(const float* values, std::size_t count, EnergyHistogram& found);
template <>
void energy_histogram_isa<Isa::baseline>(const float*, std::size_t, EnergyHistogram&);
template <>
void energy_histogram_isa<Isa::avx2>(const float*, std::size_t, EnergyHistogram&);
template <>
void energy_histogram_isa<Isa::avx512>(const float*, std::size_t, EnergyHistogram&);

}  // namespace halfscope
