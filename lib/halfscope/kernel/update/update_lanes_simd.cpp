// The loops over weights and updates, compiled once per instruction set.
#include <halfscope/kernel/update/detail/update_lanes_simd.hpp>

#include <halfscope/kernel/update/detail/update_effect_element.hpp>

// Nothing here may be emitted out of line under a name that other translation units share: everything is in
// an unnamed namespace or always inlined.
namespace halfscope {
namespace {

constexpr std::size_t lanes = UpdateLanes::lanes;
/// Elements whose counts fit into 32 bits, in which as many are added at a time as floats.
constexpr std::size_t block = std::size_t{1} << 20;
static_assert(block % lanes == 0);

void add_lane(const UpdateArrays& arrays, std::size_t i, double& applied, double& intended) {
  const UpdateOutcome outcome = update_outcome(arrays.stored[i], arrays.updated[i], arrays.update[i]);
  applied += outcome.applied;
  intended += outcome.intended;
}

void add_sums(const UpdateArrays& arrays, UpdateLanes& counters) {
  double applied[lanes], intended[lanes];
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    applied[lane] = counters.applied.data()[lane];
    intended[lane] = counters.intended.data()[lane];
  }
  std::size_t i = 0;
  for (; i + lanes <= arrays.count; i += lanes) {
#pragma omp simd
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      add_lane(arrays, i + lane, applied[lane], intended[lane]);
    }
  }
  for (std::size_t lane = 0; i < arrays.count; ++i, ++lane)
    add_lane(arrays, i, applied[lane], intended[lane]);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    counters.applied.data()[lane] = applied[lane];
    counters.intended.data()[lane] = intended[lane];
  }
}

void add_counts(const float* stored, const float* updated, const float* update, std::size_t count,
                UpdateLanes& counters) {
  std::uint32_t nonzero = 0, lost = 0;
#pragma omp simd reduction(+ : nonzero, lost)
  for (std::size_t i = 0; i < count; ++i) {
    const UpdateOutcome outcome = update_outcome(stored[i], updated[i], update[i]);
    nonzero += outcome.nonzero;
    lost += outcome.lost;
  }
  counters.nonzero += nonzero;
  counters.lost += lost;
}

}  // namespace

template <>
void add_updates_isa<target_isa>(const float* stored, const float* update, int mantissa_bits, float* out,
                                 std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) out[i] = updated_weight(stored[i], update[i], mantissa_bits);
}

template <>
void count_updates_isa<target_isa>(const UpdateArrays& arrays, UpdateLanes& counters) {
  for (std::size_t start = 0; start < arrays.count; start += block) {
    const std::size_t count = arrays.count - start < block ? arrays.count - start : block;
    add_counts(arrays.stored + start, arrays.updated + start, arrays.update + start, count, counters);
  }
  add_sums(arrays, counters);
}

template <>
std::size_t update_ratios_isa<target_isa>(const float* weights, const float* updates, float* out,
                                          std::size_t count) {
  std::size_t without = 0;
  for (std::size_t start = 0; start < count; start += block) {
    const std::size_t end = count - start < block ? count : start + block;
    std::int32_t zeros = 0;
#pragma omp simd reduction(+ : zeros)
    for (std::size_t i = start; i < end; ++i) {
      const bool both = (weights[i] != 0) & (updates[i] != 0);
      out[i] = both ? __builtin_fabsf(updates[i] / weights[i]) : 0.0f;
      zeros += both ? 0 : 1;
    }
    without += static_cast<std::size_t>(zeros);
  }
  return without;
}

}  // namespace halfscope
