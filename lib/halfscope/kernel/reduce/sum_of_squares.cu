// Sums of squares on the device: a block for each array, in which all threads read and one for each of the
// eight sums adds.
#include <halfscope/device/memory.hpp>
#include <halfscope/kernel/detail/blocks.cuh>
#include <halfscope/kernel/reduce/sum_of_squares.hpp>

namespace halfscope::cuda {
namespace {

constexpr std::int64_t lanes = sum_of_squares_lanes;
constexpr std::int64_t lane_chunk = 1024;  // terms of a sum that a pass reads

struct Terms {
  const float* values;
  std::int64_t count;
};

struct SumSquares {
  static constexpr int warp = 32, threads = lanes * warp;  // each sum in a warp of its own
  struct Shared {
    float terms[lanes][lane_chunk + 4];  // 4: rows that a warp writes to begin in different banks
  };
  struct State {
    double sum = 0;
  };

  const Terms* arrays;
  float factor;
  double* sums;  // (arrays, lanes)

  HALFSCOPE_HD void fill(const BlockThread& here, std::int64_t pass, Shared& shared) const {
    const Terms array = arrays[here.block];
    const std::int64_t first = pass * lanes * lane_chunk, left = array.count - first;
    for (std::int64_t k = here.thread; k < lanes * lane_chunk && k < left; k += threads)
      shared.terms[k % lanes][k / lanes] = array.values[first + k] * factor;
  }
  HALFSCOPE_HD void use(const BlockThread& here, std::int64_t pass, Shared& shared, State& state) const {
    if (here.thread % warp != 0) return;
    const std::int64_t lane = here.thread / warp;
    const std::int64_t left = arrays[here.block].count - pass * lanes * lane_chunk - lane;
    const std::int64_t terms = left <= 0 ? 0 : (left + lanes - 1) / lanes;
    for (std::int64_t k = 0; k < lane_chunk && k < terms; ++k) {
      const double term{shared.terms[lane][k]};
      state.sum += term * term;
    }
  }
  HALFSCOPE_HD void finish(const BlockThread& here, const State& state) const {
    if (here.thread % warp == 0) sums[here.block * lanes + here.thread / warp] = state.sum;
  }
};

}  // namespace

void sums_of_squares(std::span<const std::span<const float>> arrays, float factor, std::span<double> sums) {
  std::vector<Terms> terms;
  std::int64_t longest = 0;
  for (const std::span<const float> array : arrays) {
    terms.push_back({on_device(array), std::ssize(array)});
    longest = std::max<std::int64_t>(longest, std::ssize(array));
  }
  const auto there = Memory<Terms>::from(terms);
  const std::int64_t pass = lanes * lane_chunk;
  for_each_block(std::ssize(arrays), (longest + pass - 1) / pass,
                 SumSquares{there.data(), factor, on_device(sums)}, "sums_of_squares");
}

}  // namespace halfscope::cuda
