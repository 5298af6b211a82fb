// The scale of a block by its format's rule, and the better one of two.
#include <algorithm>
#include <array>
#include <cmath>

#include <halfscope/kernel/block/detail/block_element.hpp>
#include <halfscope/kernel/block/detail/maxima.hpp>

namespace halfscope::detail {
namespace {

/// Errors of a row of elements as TransformerEngine adds them: in FP32, ascending.
struct CandidateError {
  const BlockFormat& format;
  const BlockScale& scale;
  float tensor_amax;

  [[nodiscard]] float of(float x, float element) const {
    const float value = element * scale.value * tensor_amax / format.rule->error_denominator;
    const float error = value - x;
    return format.rule->choice == ScaleChoice::square ? error * error : std::abs(error);
  }
};

/// The sum over a block: rows are added up ascending, then their sums in halves.
float candidate_error(std::span<const float> values, const BlockRange& range, const CandidateError& error) {
  // The choice looks at the nearest elements; what stochastic rounding draws would bias it.
  const BlockFormat nearest{{error.format.element.format, Rounding::nearest_even, Overflow::saturate},
                            error.format.block,
                            error.format.rule,
                            error.format.tensor_scale};
  const ElementRounding element(nearest, {});
  std::array<float, 16> sums{};
  for (std::int64_t row = 0; row < range.rows; ++row) {
    float sum = 0;
    for (std::int64_t column = 0; column < range.columns; ++column) {
      const auto index =
          static_cast<std::size_t>((range.first_row + row) * range.stride + range.first_column + column);
      sum += error.of(values[index], element(values[index], error.scale, 0));
    }
    sums[static_cast<std::size_t>(row) % sums.size()] += sum;
  }
  for (std::size_t half = sums.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

}  // namespace

BlockMaximum block_maximum(std::span<const float> values, const BlockRange& range) {
  std::uint32_t largest = 0;
  bool has_nan = false;
  range.for_each([&](std::int64_t i) {
    const std::uint32_t magnitude = magnitude_bits(values[static_cast<std::size_t>(i)]);
    has_nan = has_nan || magnitude > infinity_bits;
    if (magnitude <= infinity_bits) largest = std::max(largest, magnitude);
  });
  return {.amax = from_bits(largest), .has_nan = has_nan};
}

BlockScale choose_scale(std::span<const float> values, const BlockRange& range, const BlockFormat& format,
                        const TensorFactors& tensor, float tensor_amax) {
  BlockMaximum maximum = block_maximum(values, range);
  maximum.element = format.element.format;
  maximum.tensor = tensor;
  const BlockScales scales = format.rule->scales(maximum);
  if (format.rule->choice == ScaleChoice::single) return scales.first;
  const float first = candidate_error(values, range, {format, scales.first, tensor_amax});
  const float second = candidate_error(values, range, {format, scales.second, tensor_amax});
  return second < first ? scales.second : scales.first;
}

float tensor_maximum(std::span<const float> values, const BlockFormat& format) {
  if (format.tensor_scale == TensorScale::none) return 0;
  BlockMaxima all;
  if (!values.empty()) find_row_maxima(values, static_cast<std::int64_t>(values.size()), {&all, 1});
  return from_bits(all.number);
}

TensorFactors tensor_factors(float tensor_amax, const BlockFormat& format) {
  return format.tensor_scale == TensorScale::none ? TensorFactors{} : format.rule->tensor(tensor_amax);
}

}  // namespace halfscope::detail
