// Lines of a tensor, some at a time, turned in a cache.
#include <halfscope/passes/detail/turned_tile.hpp>

#include <algorithm>
#include <vector>

#include <halfscope/kernel/detail/transpose_tile.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t lines_at_once = 32, width = 16;  // lines of a cache on both sides

/// out[column][row] = in[row][column], of at most `lines_at_once` rows.
void turn(const Corner<const float>& in, const Corner<float>& out, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t first = 0; first < columns; first += width)
    transpose_tile({in.at(0, first), in.stride}, {out.at(first, 0), out.stride}, rows,
                   std::min(width, columns - first));
}

}  // namespace

void read_turned(const TensorFile& file, std::size_t index, const detail::AroundAxis& around,
                 const MatrixTile& tile, std::span<float> out) {
  thread_local std::vector<float> buffer;
  const auto [rows, columns] = tile.shape;
  for (std::int64_t done = 0; done < rows;) {
    const std::int64_t outer = (tile.row + done) / around.inner, inner = (tile.row + done) % around.inner;
    const std::int64_t count = std::min(around.inner - inner, rows - done);
    const std::int64_t stride = count + width;  // no power of two, whose lines share a place in a cache
    buffer.resize(static_cast<std::size_t>(lines_at_once * stride));
    for (std::int64_t at = 0; at < columns; at += lines_at_once) {
      const std::int64_t lines = std::min(lines_at_once, columns - at);
      for (std::int64_t k = 0; k < lines; ++k) {
        const std::span<float> line(buffer.data() + k * stride, static_cast<std::size_t>(count));
        file.read_into(index, (outer * around.length + tile.column + at + k) * around.inner + inner, line);
      }
      turn({buffer.data(), stride}, {out.data() + done * columns + at, columns}, lines, count);
    }
    done += count;
  }
}

}  // namespace halfscope
