// The sum of squares on the device: a thread for each of the eight sums, which reads ahead of itself.
#include <halfscope/core/memory.hpp>
#include <halfscope/kernel/launch.cuh>
#include <halfscope/kernel/sum_of_squares.hpp>

namespace halfscope::cuda {
namespace {

constexpr std::int64_t lanes = sum_of_squares_lanes;

struct AddLane {
  const float* values;
  std::int64_t count;
  float factor;
  double* sums;

  [[nodiscard]] HALFSCOPE_HD double square(float value) const {
    const double x{value * factor};
    return x * x;
  }

  HALFSCOPE_HD void operator()(std::int64_t lane) const {
    constexpr int ahead = 16;
    double sum = 0;
    std::int64_t i = lane;
    for (; i + (ahead - 1) * lanes < count; i += ahead * lanes) {
      float next[ahead];
      for (int k = 0; k < ahead; ++k) next[k] = values[i + k * lanes];
      for (int k = 0; k < ahead; ++k) sum += square(next[k]);
    }
    for (; i < count; i += lanes) sum += square(values[i]);
    sums[lane] = sum;
  }
};

}  // namespace

void queue_sum_of_squares(std::span<const float> values, float factor, std::span<double> sums) {
  for_each(lanes, AddLane{on_device(values), std::ssize(values), factor, on_device(sums)}, "sum_of_squares");
}

double sum_of_squares(std::span<const float> values) {
  Memory<double> sums(lanes);
  queue_sum_of_squares(values, 1, sums.values());
  double sum = 0;
  for (const double lane : sums.to_host()) sum += lane;
  return sum;
}

}  // namespace halfscope::cuda
