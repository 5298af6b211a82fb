// The loops of magnitudes' sums, compiled once per instruction set.
#include <halfscope/kernel/reduce/detail/magnitudes_simd.hpp>

#include <cmath>

namespace halfscope {
namespace {

constexpr std::size_t lanes = 16;  // in each instruction set, so that the sums are the same

}  // namespace

/// Element i is added to lane i % 16.
template <>
double row_magnitude_isa<target_isa>(const float* values, std::size_t count) {
  double sums[lanes] = {};
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
#pragma omp simd
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += double{std::abs(values[i + lane])};
  }
  for (std::size_t i = whole; i < count; ++i) sums[i - whole] += double{std::abs(values[i])};
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

template <>
void column_magnitudes_isa<target_isa>(const Rows& rows, std::size_t columns, double* sums) {
  double own[magnitude_columns] = {};
  for (std::size_t row = 0; row < rows.count; ++row) {
    const float* values = rows.start + row * rows.stride;
#pragma omp simd
    for (std::size_t column = 0; column < columns; ++column) own[column] += double{std::abs(values[column])};
  }
  for (std::size_t column = 0; column < columns; ++column) sums[column] = own[column];
}

}  // namespace halfscope
