// Eight sums at a time.
#include <algorithm>
#include <array>

#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/kernel/reduce/sum_of_squares.hpp>

namespace halfscope {
namespace {

constexpr std::size_t lanes = sum_of_squares_lanes;
using Lanes = std::array<double, lanes>;

Lanes sums_of(std::span<const float> values, float factor) {
  Lanes sums{};
  const auto add = [&](std::size_t lane, float value) {
    const double term{value * factor};
    sums[lane] += term * term;
  };
  const std::size_t whole = values.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) add(lane, values[i + lane]);
  }
  for (std::size_t i = whole; i < values.size(); ++i) add(i - whole, values[i]);
  return sums;
}

}  // namespace

void sums_of_squares(std::span<const std::span<const float>> arrays, float factor, std::span<double> sums) {
  detail::check_equal_sizes("sums_of_squares", arrays.size() * lanes, sums.size());
  if (active_device() == Device::cuda) return cuda::sums_of_squares(arrays, factor, sums);
  for (std::size_t i = 0; i < arrays.size(); ++i)
    std::ranges::copy(sums_of(arrays[i], factor), sums.subspan(i * lanes, lanes).begin());
}

}  // namespace halfscope
