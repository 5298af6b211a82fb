// Eight sums at a time.
#include <array>
#include <numeric>

#include <halfscope/kernel/reduce/sum_of_squares.hpp>

namespace halfscope {

double sum_of_squares(std::span<const float> values) {
  if (active_device() == Device::cuda) return cuda::sum_of_squares(values);
  constexpr std::size_t lanes = sum_of_squares_lanes;
  std::array<double, lanes> sums{};
  const std::size_t whole = values.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (std::size_t i = whole; i < values.size(); ++i) {
    sums[i - whole] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace halfscope
