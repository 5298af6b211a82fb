// Lines of a tensor, some at a time, turned in a cache.
#include <halfscope/io/detail/turned_tile.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

#include <halfscope/kernel/detail/quads.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t lines_at_once = 32, width = 16;  // lines of a cache on both sides

/// Rows of floats, one every `stride`.
template <typename Float>
struct Strided {
  Float* data;
  std::int64_t stride;

  [[nodiscard]] Float* at(std::int64_t row, std::int64_t column) const {
    return data + row * stride + column;
  }
};

/// Four by four.
void turn_quad(const Strided<const float>& in, const Strided<float>& out, std::int64_t row,
               std::int64_t column) {
  Quads quads;
  for (std::int64_t k = 0; k < 4; ++k) std::memcpy(&quads.row[k], in.at(row + k, column), sizeof(Quad));
  quads = transposed(quads);
  for (std::int64_t k = 0; k < 4; ++k) std::memcpy(out.at(column + k, row), &quads.row[k], sizeof(Quad));
}

/// out[column][row] = in[row][column].
void turn(const Strided<const float>& in, const Strided<float>& out, std::int64_t rows,
          std::int64_t columns) {
  const std::int64_t whole_rows = rows / 4 * 4;
  for (std::int64_t first = 0; first < columns; first += width) {
    const std::int64_t last = std::min(first + width, columns), whole = first + (last - first) / 4 * 4;
    for (std::int64_t column = first; column < whole; column += 4)
      for (std::int64_t row = 0; row < whole_rows; row += 4) turn_quad(in, out, row, column);
    for (std::int64_t column = first; column < last; ++column)
      for (std::int64_t row = column < whole ? whole_rows : 0; row < rows; ++row)
        *out.at(column, row) = *in.at(row, column);
  }
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
