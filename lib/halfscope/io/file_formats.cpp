// Tensors tile by tile: small ones side by side, large ones by all threads, each tile for all formats at
// once.
#include <halfscope/io/file_formats.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/file_pair.hpp>
#include <halfscope/io/detail/matrix_tiles.hpp>
#include <halfscope/io/detail/tensor_parts.hpp>
#include <halfscope/kernel/block/detail/axis_last.hpp>
#include <halfscope/stats/detail/format_counter.hpp>

namespace halfscope {
namespace {

/// Tensors of so many elements share the threads one by one; larger ones take all of them.
constexpr std::int64_t most_of_small = std::int64_t{1} << 20;

/// Whether a tensor with blocks along `axis` is read into memory as a whole.
bool is_held(const StoredTensor& tensor, const detail::AroundAxis& around) {
  const bool in_order = around.inner == 1 && tensor.axes.empty() && tensor.access == Access::random;
  return tensor.elements > 0 && !in_order;
}

/// Throws InvalidArgument where a tensor that is held is larger than the machine's memory.
void require_room(const StoredTensor& tensor, std::int64_t axis) {
  const detail::AroundAxis around = *detail::around_axis(tensor.shape, axis);
  if (!is_held(tensor, around)) return;
  const double copies = around.inner == 1 ? 1 : 2;  // one more while the axis is brought to the end
  const double needed = copies * sizeof(float) * static_cast<double>(tensor.elements);
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (needed <= memory) return;
  constexpr double gib = 1 << 30;
  throw InvalidArgument(fmt::format(
      "'{}' of shape {} is too large for blocks along axis {}: it would be held in memory, which takes "
      "{:.0f} GiB of this machine's {:.0f}; save it with that axis last, in row-major order and "
      "uncompressed",
      escaped(tensor.name), to_string(tensor.shape), axis, needed / gib, memory / gib));
}

/// A tensor as a matrix, read tile by tile from its file or from memory.
class TensorMatrix {
 public:
  TensorMatrix(const TensorFile& file, std::size_t index, std::int64_t axis) : file_(file), index_(index) {
    const StoredTensor& tensor = file.tensors()[index];
    shape_ = matrix_along(tensor.shape, axis, tensor.name);
    const detail::AroundAxis around = *detail::around_axis(tensor.shape, axis);
    if (!is_held(tensor, around)) return;
    in_memory_.resize(static_cast<std::size_t>(tensor.elements));
    file.read_row_major(index, in_memory_);
    if (around.inner != 1) bring_axis_last(around);
  }

  [[nodiscard]] const MatrixShape& shape() const { return shape_; }
  /// The elements of a tile; `buffer` holds them where no array does.
  [[nodiscard]] std::span<const float> tile(const MatrixTile& tile, std::vector<float>& buffer) const {
    buffer.resize(static_cast<std::size_t>(tile.shape.rows * tile.shape.columns));
    if (in_memory_.empty()) {
      read_tile(file_, index_, shape_.columns, tile, buffer);
      return buffer;
    }
    auto out = buffer.begin();
    for_each_row(tile, [&](std::span<const float> row) { out = std::ranges::copy(row, out).out; });
    return buffer;
  }
  [[nodiscard]] TensorMaximum maximum(const MatrixTile& tile) const {
    TensorMaximum found;
    const auto add = [&](std::span<const float> piece) { found.add(piece); };
    in_memory_.empty() ? read_pieces(file_, index_, shape_.columns, tile, add) : for_each_row(tile, add);
    return found;
  }

 private:
  template <typename Take>
  void for_each_row(const MatrixTile& tile, const Take& take) const {
    for (std::int64_t row = tile.row; row < tile.row + tile.shape.rows; ++row) {
      const auto from = static_cast<std::size_t>(row * shape_.columns + tile.column);
      take(std::span(in_memory_).subspan(from, static_cast<std::size_t>(tile.shape.columns)));
    }
  }

  void bring_axis_last(const detail::AroundAxis& around) {
    std::vector<float> moved(in_memory_.size());
    detail::bring_axis_last(std::span<const float>(in_memory_), around, std::span(moved));
    in_memory_ = std::move(moved);
  }

  const TensorFile& file_;
  std::size_t index_;
  MatrixShape shape_;
  std::vector<float> in_memory_;  ///< the matrix; empty where it is read from the file
};

CountedPart part_of(std::span<const float> values, const MatrixTile& tile, const MatrixShape& matrix) {
  return {values, tile.shape, tile.row * matrix.columns + tile.column, matrix.columns};
}

/// On one thread. A tensor of one tile is read once.
std::vector<FormatCounts> count_small(const TensorMatrix& matrix, const FormatRequest& request) {
  const std::vector<MatrixTile> tiles = matrix_tiles(matrix.shape(), tile_unit(request.formats));
  std::vector<float> buffer;
  TensorMaximum maximum;
  for (const MatrixTile& tile : tiles) maximum.add(matrix.tile(tile, buffer));
  const FormatCounter counter(request.formats, maximum, request.exponents);
  std::vector<BlockCounts> found;
  for (const MatrixTile& tile : tiles) {
    const std::span<const float> values = tiles.size() == 1 ? buffer : matrix.tile(tile, buffer);
    counter.add(part_of(values, tile, matrix.shape()), found);
  }
  return counter.finish(std::move(found));
}

/// By all threads: the tensor's largest magnitude, then its tiles.
std::vector<FormatCounts> count_large(const TensorMatrix& matrix, const FormatRequest& request) {
  const std::vector<MatrixTile> tiles = matrix_tiles(matrix.shape(), tile_unit(request.formats));
  const std::vector<MatrixTile> rows = matrix_tiles(matrix.shape(), tile_unit({}));
  TensorMaximum maximum;
  work_through(
      std::span<const MatrixTile>(rows), [&](const MatrixTile& part) { return matrix.maximum(part); },
      [&](const MatrixTile&, const TensorMaximum& part) { maximum.merge(part); });
  const FormatCounter counter(request.formats, maximum, request.exponents);
  std::vector<BlockCounts> all(request.formats.size());
  work_through(
      std::span<const MatrixTile>(tiles),
      [&](const MatrixTile& tile) {
        thread_local std::vector<float> buffer;
        std::vector<BlockCounts> found;
        counter.add(part_of(matrix.tile(tile, buffer), tile, matrix.shape()), found);
        return found;
      },
      [&](const MatrixTile&, const std::vector<BlockCounts>& found) {
        for (std::size_t i = 0; i < all.size(); ++i) all[i].merge(found[i]);
      });
  return counter.finish(std::move(all));
}

/// A tensor of one of the files.
struct Place {
  std::size_t file = 0, index = 0;
};

/// Counts of a tensor; an error where its file is damaged there.
struct TensorFound {
  MatrixShape shape{};
  std::vector<FormatCounts> formats{};
  std::exception_ptr error{};
};

class FormatsPass {
 public:
  FormatsPass(std::span<const ChosenTensors> files, const FormatRequest& request, const FormatsSink& sink)
      : files_(files), request_(request), sink_(sink) {}

  void run() {
    std::vector<Place> small;
    for (std::size_t file = 0; file < files_.size(); ++file) {
      for (const std::size_t index : files_[file].tensors) {
        const Place place{file, index};
        if (stored(place).elements <= most_of_small) {
          small.push_back(place);
          continue;
        }
        count_side_by_side(small);
        if (failed_ != file) take(place, count(place, count_large));
      }
    }
    count_side_by_side(small);
  }

 private:
  [[nodiscard]] const StoredTensor& stored(const Place& place) const {
    return files_[place.file].file->tensors()[place.index];
  }

  template <typename Count>
  [[nodiscard]] TensorFound count(const Place& place, const Count& count_matrix) const {
    try {
      const TensorMatrix matrix(*files_[place.file].file, place.index, request_.axis);
      return {.shape = matrix.shape(), .formats = count_matrix(matrix, request_)};
    } catch (...) {
      return {.error = std::current_exception()};
    }
  }

  void count_side_by_side(std::vector<Place>& places) {
    work_through(
        std::span<const Place>(places), [&](const Place& place) { return count(place, count_small); },
        [&](const Place& place, TensorFound&& found) { take(place, found); });
    places.clear();
  }

  void take(const Place& place, const TensorFound& found) {
    if (failed_ == place.file) return;
    if (sink_.progress) sink_.progress(place.file, stored(place).elements);
    if (found.error) {
      failed_ = place.file;
      return sink_.failed(place.file, found.error);
    }
    sink_.tensor({place.file, place.index, found.shape, found.formats});
  }

  std::span<const ChosenTensors> files_;
  const FormatRequest& request_;
  const FormatsSink& sink_;
  std::optional<std::size_t> failed_;  ///< the last file that did
};

}  // namespace

MatrixShape matrix_along(const std::vector<std::int64_t>& shape, std::int64_t axis, const std::string& name) {
  const std::optional<detail::AroundAxis> around = detail::around_axis(shape, axis);
  if (!around) {
    const std::int64_t axes = std::max<std::int64_t>(1, std::ssize(shape));
    throw InvalidArgument(fmt::format("axis {} of '{}', which has {} ax{}s: give one from {} to {}", axis,
                                      escaped(name), axes, axes == 1 ? "i" : "e", -axes, axes - 1));
  }
  if (around->length == 0) return {0, 0};
  return {around->outer * around->inner, around->length};
}

void count_formats(std::span<const ChosenTensors> files, const FormatRequest& request,
                   const FormatsSink& sink) {
  for (const ChosenTensors& file : files) {
    for (const std::size_t index : file.tensors) {
      const StoredTensor& tensor = file.file->tensors().at(index);
      static_cast<void>(matrix_along(tensor.shape, request.axis, tensor.name));
      require_room(tensor, request.axis);
    }
  }
  FormatsPass(files, request, sink).run();
}

}  // namespace halfscope
