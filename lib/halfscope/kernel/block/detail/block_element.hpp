// The arithmetic of one block: its largest magnitude, its scale, and its elements at that scale.
#pragma once

#include <cstdint>

#include <halfscope/format/block_format.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/block/quantise.hpp>
#include <halfscope/kernel/cast/round.hpp>

namespace halfscope::detail {

/// The elements of one block in a matrix, with the matrix's last ones cut off.
struct BlockRange {
  std::int64_t first_row, rows, first_column, columns, stride;

  /// Calls body(index) in row-major order.
  template <typename Body>
  void for_each(const Body& body) const {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t start = (first_row + row) * stride + first_column;
      for (std::int64_t column = 0; column < columns; ++column) body(start + column);
    }
  }
};

[[nodiscard]] inline BlockRange block_range(const MatrixShape& shape, const BlockShape& block,
                                            std::int64_t index) {
  const MatrixShape grid = block_grid(shape, block);
  const std::int64_t row = index / grid.columns * block.rows, column = index % grid.columns * block.columns;
  return {row, std::min<std::int64_t>(block.rows, shape.rows - row), column,
          std::min<std::int64_t>(block.columns, shape.columns - column), shape.columns};
}

/// The rounding of a format's elements, worked out once per array.
struct ElementRounding {
  Quantizer quantizer;
  RoundingGrid grid;
  ScaleStep step;
  ZeroSign zero;
  RandomStream stream;

  ElementRounding(const BlockFormat& format, const RandomStream& random)
      : quantizer(format.element),
        grid(rounding_grid(format.element)),
        step(format.rule->step),
        zero(format.rule->zero),
        stream(random) {}

  /// The element at a scale, before it is rounded.
  [[nodiscard]] float scaled(float x, const BlockScale& scale) const {
    const float product = step == ScaleStep::multiply ? x * scale.factor : x / scale.factor;
    return product == 0 && zero == ZeroSign::dropped ? 0.0f : product;
  }
  /// The number that the element becomes.
  [[nodiscard]] float operator()(float x, const BlockScale& scale, std::int64_t index) const {
    const float exact = scaled(x, scale);
    if (quantizer.rounding == Rounding::nearest_even)
      return round_on_grid<Rounding::nearest_even>(exact, grid);
    const bool draws = quantizer.rounding == Rounding::stochastic;
    return round(exact, quantizer, draws ? rounding_bits(stream, static_cast<std::uint64_t>(index)) : 0u);
  }
};

/// Largest magnitude of the numbers of a block, infinity included, and whether there is a NaN.
[[nodiscard]] BlockMaximum block_maximum(std::span<const float> values, const BlockRange& range);

/// The block's scale, of two candidates the better one.
[[nodiscard]] BlockScale choose_scale(std::span<const float> values, const BlockRange& range,
                                      const BlockFormat& format, const TensorFactors& tensor,
                                      float tensor_amax);

/// The number of an element that its block's scale and the tensor's multiply, each product rounded to FP32.
[[nodiscard]] inline float element_value(float element, float scale, const TensorFactors& tensor,
                                         const BlockFormat& format) {
  const float value = element * scale;
  return with_one_nan(format.tensor_scale == TensorScale::none ? value : value * tensor.scale);
}

/// The largest finite or infinite magnitude of a tensor whose format has a tensor scale; else 0, which
/// nothing is made of.
[[nodiscard]] float tensor_maximum(std::span<const float> values, const BlockFormat& format);
/// The tensor's factors under the format's rule.
[[nodiscard]] TensorFactors tensor_factors(float tensor_amax, const BlockFormat& format);

}  // namespace halfscope::detail
