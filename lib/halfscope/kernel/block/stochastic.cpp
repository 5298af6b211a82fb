// Stochastic rounding in blocks: rows are brought to scale, rounded some thousand elements at a time, and
// taken back.
#include <halfscope/kernel/block/detail/stochastic.hpp>

#include <array>
#include <cmath>

#include <halfscope/kernel/block/detail/count.hpp>
#include <halfscope/kernel/cast/round.hpp>

namespace halfscope::detail {
namespace {

/// Consecutive elements of a matrix that wait for their random bits.
class WaitingElements {
 public:
  WaitingElements(const TensorInBlocks& tensor, const RandomStream& stream, std::span<float> out)
      : tensor_(tensor), rounding_(tensor.format, tensor.factors), stream_(stream), out_(out) {}

  /// Takes in the rows of a tile, none of which is written before all are read.
  void add(const ScaledTile& tile) {
    for (std::int64_t row = 0; row < tile.range.rows; ++row) {
      for (std::int64_t column = 0; column < tile.range.columns; column += piece)
        add(tile, row, column, std::min(piece, tile.range.columns - column));
    }
  }
  /// Rounds what waits, and writes its values.
  void write() {
    const std::span<float> elements(elements_.data(), count_);
    round_stochastic_part(elements, elements, tensor_.format.element, stream_, first_);
    float* const to = out_.data() + first_;
    for (std::size_t i = 0; i < count_; ++i) {
      const float element = std::isnan(elements_[i]) ? rounding_.nan : elements_[i];
      to[i] = with_one_nan(element * scales_[i] * rounding_.tensor_scale);
    }
    count_ = 0;
  }

 private:
  static constexpr std::int64_t piece = segment_columns;
  static constexpr std::size_t capacity = 4 * segment_columns;

  void add(const ScaledTile& tile, std::int64_t row, std::int64_t column, std::int64_t columns) {
    const std::size_t start = tile.start_of(row) + static_cast<std::size_t>(column);
    const auto count = static_cast<std::size_t>(columns);
    if (start != first_ + count_ || count_ + count > capacity) write();
    if (count_ == 0) first_ = start;
    const std::span<float> scaled = std::span(elements_).subspan(count_, count);
    bring_to_scale(tensor_.values.subspan(start, count),
                   {tile.scales, tile.block_columns, tensor_.format.rule->step}, column, scaled,
                   std::span(scales_).subspan(count_, count));
    if (rounding_.zero == ZeroSign::dropped)
      for (float& x : scaled) x = x == 0 ? 0.0f : x;
    count_ += count;
  }

  const TensorInBlocks& tensor_;
  SegmentRounding rounding_;
  const RandomStream& stream_;
  std::span<float> out_;
  std::size_t first_ = 0, count_ = 0;
  std::array<float, capacity> elements_, scales_;
};

}  // namespace

void write_stochastic_values(const TensorInBlocks& tensor, const RandomStream& stream, std::span<float> out) {
  visit_tile_ranges(tensor, [&](TileScaler& tiles, std::int64_t first, std::int64_t count) {
    WaitingElements waiting(tensor, stream, out);
    for (std::int64_t i = first; i < first + count; ++i) waiting.add(tiles.scale(i));
    waiting.write();
  });
}

}  // namespace halfscope::detail
