// The counting of blocks: each part of the matrix has counts of its own, which are added up at the end.
#include <halfscope/stats/block_counts.hpp>

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/block/detail/block_element.hpp>

namespace halfscope {
namespace {

/// The magnitudes at a block's scale at which counters begin.
struct ElementLimits {
  float normal, largest;  ///< the largest number, and what FP32 steps of a rule can make of it
  double overflow;        ///< overflow_limit of the elements
  bool overflow_itself;   ///< limit_overflows

  explicit ElementLimits(const BlockFormat& block)
      : normal(static_cast<float>(power_of_two(block.element.format.min_exponent()))),
        largest(from_bits(block.element.format.max_finite_bits())),
        overflow(overflow_limit(block.element.format)),
        overflow_itself(limit_overflows(block.element.format)) {
    if (block.scale() != ScaleFormat::e8m0) largest *= 1 + 0x1p-21f;
  }

  [[nodiscard]] bool overflows(float magnitude) const {
    return double{magnitude} > overflow || (double{magnitude} == overflow && overflow_itself);
  }
};

/// The codes of a scale format that are counted by name.
struct ScaleLimits {
  std::uint32_t least, largest;
};
constexpr ScaleLimits scale_limits(ScaleFormat scale) {
  switch (scale) {
    case ScaleFormat::e8m0:
      return {0, e8m0::largest_code};
    case ScaleFormat::ue4m3:
      return {1, ue4m3.max_finite_code()};
    case ScaleFormat::fp32:
      break;
  }
  return {1, infinity_bits - 1};
}

/// One part of a matrix on its way into the counts.
class BlockCounter {
 public:
  BlockCounter(std::span<const float> values, const BlockFormat& format,
               const detail::ElementRounding& element, std::span<float> rounded)
      : values_(values), rounded_(rounded), format_(format), element_(element), limits_(format) {}

  void count(const detail::BlockRange& range, const BlockScale& scale, const TensorFactors& tensor) {
    const Snapshot before{counts_.elements, counts_.zeros, counts_.nonfinite, counts_.clipped,
                          counts_.overflow};
    count_scale(scale);
    range.for_each([&](std::int64_t i) {
      const float x = values_[static_cast<std::size_t>(i)];
      const float element = element_(x, scale, i);
      const float code = decode(encode(element, format_.element.format), format_.element.format);
      const float value = detail::element_value(code, scale.value, tensor, format_);
      count_element(x, element, value, scale);
      if (!rounded_.empty()) rounded_[static_cast<std::size_t>(i)] = value;
    });
    ++counts_.blocks;
    const std::int64_t elements = counts_.elements - before.elements;
    counts_.zero_blocks += counts_.zeros - before.zeros == elements ? 1 : 0;
    counts_.nonfinite_blocks += counts_.nonfinite > before.nonfinite ? 1 : 0;
    counts_.clipped_blocks += counts_.clipped > before.clipped ? 1 : 0;
    counts_.overflow_blocks += counts_.overflow > before.overflow ? 1 : 0;
  }
  [[nodiscard]] const BlockCounts& counts() const { return counts_; }

 private:
  /// Counters before a block, against which the block's own are told.
  struct Snapshot {
    std::int64_t elements, zeros, nonfinite, clipped, overflow;
  };

  std::span<const float> values_;
  std::span<float> rounded_;
  const BlockFormat& format_;
  const detail::ElementRounding& element_;
  ElementLimits limits_;
  BlockCounts counts_;

  void count_scale(const BlockScale& scale) {
    const auto [least, largest] = scale_limits(format_.scale());
    counts_.scale_codes[format_.scale() == ScaleFormat::fp32 ? scale.code >> 23 & 0xFFu : scale.code] += 1;
    counts_.zero_scales += scale.value == 0 ? 1 : 0;
    counts_.nan_scales += std::isfinite(scale.value) ? 0 : 1;
    counts_.least_scales += scale.code == least ? 1 : 0;
    counts_.largest_scales += scale.code == largest ? 1 : 0;
  }
  void count_element(float x, float element, float value, const BlockScale& scale) {
    ++counts_.elements;
    if (x == 0) {
      ++counts_.zeros;
      return;
    }
    if (!std::isfinite(x)) {
      ++counts_.nonfinite;
      return;
    }
    if (std::isfinite(value)) {
      counts_.signal.add(double{x});
      counts_.error.add(double{x} - double{value});
    }
    if (value == 0) ++counts_.flushed;
    if (scale.value == 0) {
      ++counts_.flushed_by_scale;
      return;
    }
    if (std::isfinite(scale.value))
      count_scaled(std::abs(element_.scaled(x, scale)), std::abs(element), value);
  }
  void count_scaled(float magnitude, float element, float value) {
    if (magnitude > 0 && std::isfinite(magnitude)) {
      const int exponent = std::ilogb(magnitude);
      ++counts_.exponents[static_cast<std::size_t>(exponent - BlockCounts::first_exponent)];
    }
    counts_.subnormal += element < limits_.normal && value != 0 ? 1 : 0;
    counts_.clipped += magnitude > limits_.largest ? 1 : 0;
    counts_.overflow += limits_.overflows(magnitude) ? 1 : 0;
  }
};

}  // namespace

void SquareSums::add(double x) {
  if (x == 0) return;
  constexpr int bits = 15;
  const int exponent = std::ilogb(x);
  const auto significand = std::llrint(std::ldexp(std::abs(x), bits - 1 - exponent));
  binades_[static_cast<std::size_t>(exponent - lowest)] += significand * significand;
}

void SquareSums::merge(const SquareSums& part) {
  for (std::size_t i = 0; i < binades_.size(); ++i) binades_[i] += part.binades_[i];
}

double SquareSums::sum() const {
  constexpr int bits = 15;
  double sum = 0;
  for (std::size_t i = 0; i < binades_.size(); ++i) {
    const int exponent = lowest + static_cast<int>(i) - (bits - 1);
    sum += std::ldexp(static_cast<double>(binades_[i]), 2 * exponent);
  }
  return sum;
}

void BlockCounts::merge(const BlockCounts& part) {
  constexpr std::array counters{&BlockCounts::elements,         &BlockCounts::zeros,
                                &BlockCounts::nonfinite,        &BlockCounts::flushed,
                                &BlockCounts::flushed_by_scale, &BlockCounts::subnormal,
                                &BlockCounts::clipped,          &BlockCounts::overflow,
                                &BlockCounts::blocks,           &BlockCounts::zero_blocks,
                                &BlockCounts::nonfinite_blocks, &BlockCounts::clipped_blocks,
                                &BlockCounts::overflow_blocks,  &BlockCounts::zero_scales,
                                &BlockCounts::least_scales,     &BlockCounts::largest_scales,
                                &BlockCounts::nan_scales};
  for (const auto counter : counters) this->*counter += part.*counter;
  for (std::size_t i = 0; i < scale_codes.size(); ++i) scale_codes[i] += part.scale_codes[i];
  for (std::size_t i = 0; i < exponents.size(); ++i) exponents[i] += part.exponents[i];
  signal.merge(part.signal);
  error.merge(part.error);
}

double BlockCounts::signal_to_noise_db() const {
  return 10 * std::log10(signal.sum() / error.sum());
}

double BlockCounts::relative_squared_error() const {
  const double difference = error.sum();
  return difference == 0 ? 0 : difference / signal.sum();
}

BlockCounts count_blocks(std::span<const float> values, const MatrixShape& shape, const BlockFormat& format,
                         const RandomStream& stream, std::span<float> rounded) {
  const auto size = static_cast<std::size_t>(shape.rows * shape.columns);
  if (values.size() != size || (!rounded.empty() && rounded.size() != size)) {
    throw InvalidArgument(fmt::format("count_blocks: {} values, {} results, but a matrix of {} x {}",
                                      values.size(), rounded.size(), shape.rows, shape.columns));
  }
  const float tensor_amax = detail::tensor_maximum(values, format);
  const TensorFactors tensor = detail::tensor_factors(tensor_amax, format);
  const detail::ElementRounding element(format, stream);
  const MatrixShape grid = block_grid(shape, format.block);
  constexpr std::int64_t parts = 64;
  const std::int64_t blocks = grid.rows * grid.columns, grain = blocks / parts + 1;
  std::vector<BlockCounts> found(static_cast<std::size_t>((blocks + grain - 1) / grain));
  parallel_for_ranges(blocks, grain, [&](std::int64_t first, std::int64_t count) {
    BlockCounter counter(values, format, element, rounded);
    for (std::int64_t i = first; i < first + count; ++i) {
      const detail::BlockRange range = detail::block_range(shape, format.block, i);
      counter.count(range, detail::choose_scale(values, range, format, tensor, tensor_amax), tensor);
    }
    found[static_cast<std::size_t>(first / grain)] = counter.counts();
  });
  BlockCounts all;
  for (const BlockCounts& part : found) all.merge(part);
  return all;
}

}  // namespace halfscope
