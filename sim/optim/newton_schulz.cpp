// Steps of the iteration by the gather GEMM.
#include "sim/optim/newton_schulz.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <halfscope/device/memory.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/kernel/reduce/sum_of_squares.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {
namespace {

constexpr float linear_share = 3.4445f, cubic_share = -4.775f, quintic_share = 2.0315f;
constexpr double least_norm = 1e-7;

Array transposed_matrix(const Array& x) {
  Array turned({x.extent(1), x.extent(0)});
  transpose(x.view(), x.extent(0), x.extent(1), turned.view());
  return turned;
}

/// (rows of a, columns of b), each sum in FP32.
Array matrix_product(const Array& a, const Array& b) {
  Array c({a.extent(0), b.extent(1)});
  const auto rows = strided_offsets(a.extent(0), a.extent(1)), columns = strided_offsets(a.extent(1), 1);
  gemm({ElementReader(a.view()), rows.values(), columns.values(), MatrixLayout::row_major, a.extent(1)},
       {ElementReader(b.view()), b.extent(0), b.extent(1)}, c.values(), {.order = AccumulateOrder::fused});
  return c;
}

void round_to(const Quantizer& format, Array& x) {
  if (!format.is_identity()) round_in_threads(x.values(), format);
}

/// factor x + other, rounded once to the format.
Array combined_matrices(float factor, const Array& x, const Array& other, const Quantizer& format) {
  Array sum(x.shape());
  scale(x.view(), factor, sum.values());
  add(other.view(), sum.values());
  round_to(format, sum);
  return sum;
}

double norm_of(const Array& x) {
  Memory<double> lanes(sum_of_squares_lanes);
  const std::array arrays{x.values()};
  sums_of_squares(arrays, 1, lanes.values());
  double sum = 0;
  for (const double lane : lanes.to_host()) sum += lane;
  return std::sqrt(sum);
}

Array iterated(Array x, const NewtonSchulz& iteration) {
  for (int step = 0; step < iteration.steps; ++step) {
    Array gram = matrix_product(x, transposed_matrix(x));
    round_to(iteration.format, gram);
    Array square = matrix_product(gram, gram);
    scale(square.view(), quintic_share, square.values());
    const Array shares = combined_matrices(cubic_share, gram, square, iteration.format);
    x = combined_matrices(linear_share, x, matrix_product(shares, x), iteration.format);
  }
  return x;
}

}  // namespace

Array orthogonalised(const Array& matrix, const NewtonSchulz& iteration) {
  const bool is_tall = matrix.extent(0) > matrix.extent(1);
  Array x = is_tall ? transposed_matrix(matrix) : matrix.clone();
  round_to(iteration.format, x);
  scale(x.view(), static_cast<float>(1 / std::max(norm_of(x), least_norm)), x.values());
  round_to(iteration.format, x);
  x = iterated(std::move(x), iteration);
  return is_tall ? transposed_matrix(x) : std::move(x);
}

}  // namespace halfscope
