// Forward and backward of taking predictions out of feature maps: copies.
#include "sim/layers/predictions.hpp"

#include <fmt/format.h>

#include "lib/nn/strided_elementwise.hpp"

namespace halfscope {
namespace {

/// Where one map's predictions of every image go.
struct MapRows {
  TensorRef map;
  std::int64_t first = 0, count = 0;  ///< rows of an image
};

struct Layout {
  std::vector<MapRows> maps{};
  std::int64_t batch = 0;
  std::int64_t rows = 0;  ///< rows of an image, all maps together
};

Layout layout_of(const Tape& tape, const std::string& name, std::span<const TensorRef> maps,
                 const PredictionSlice& slice) {
  Layout layout;
  for (const TensorRef map : maps) {
    const Shape& shape = tape.value(map).shape();
    if (shape.size() != 4 || slice.size < 1 || shape[3] % slice.size != 0 || slice.first < 0 ||
        slice.count < 1 || slice.first + slice.count > slice.size ||
        (!layout.maps.empty() && shape[0] != layout.batch)) {
      throw InvalidArgument(
          fmt::format("layer {}: cannot take numbers {} to {} of predictions of {} out of {}", name,
                      slice.first, slice.first + slice.count - 1, slice.size, to_string(shape)));
    }
    const std::int64_t count = shape[1] * shape[2] * shape[3] / slice.size;
    layout.batch = shape[0];
    layout.maps.push_back({map, layout.rows, count});
    layout.rows += count;
  }
  return layout;
}

/// The predictions of one map, where they are in it and where they go.
struct MapCopy {
  ColumnExtents extents;
  std::int64_t map_row, map_matrix;
  std::int64_t first, row, matrix;
};

MapCopy copy_of(const Layout& layout, const MapRows& map, const PredictionSlice& slice) {
  return {{map.count, slice.count, layout.batch},
          slice.size,
          map.count * slice.size,
          map.first * slice.count,
          slice.count,
          layout.rows * slice.count};
}

}  // namespace

TensorRef gather_predictions(Tape& tape, const std::string& name, std::span<const TensorRef> maps,
                             const PredictionSlice& slice) {
  std::vector<TensorRef> inputs(maps.begin(), maps.end());
  const Operation operation = tape.operation("cat", name, inputs);
  const Layout layout = layout_of(tape, name, inputs, slice);
  const DType storage = inputs.empty() ? DType::f32 : tape.value(inputs.front()).dtype();
  Array y({layout.batch * layout.rows, slice.count}, storage);
  for (const MapRows& map : layout.maps) {
    const MapCopy copy = copy_of(layout, map, slice);
    copy_columns(copy.extents, {tape.value(map.map).view(), slice.first, copy.map_row, copy.map_matrix},
                 {y.view(), copy.first, copy.row, copy.matrix});
  }
  const auto backward = [layout, slice](BackwardScope& scope, Array gradient) {
    for (const MapRows& map : layout.maps) {
      Array x_gradient = Array::zeros(scope.value(map.map).shape(), gradient.dtype());
      const MapCopy copy = copy_of(layout, map, slice);
      copy_columns(copy.extents, {gradient.view(), copy.first, copy.row, copy.matrix},
                   {x_gradient.view(), slice.first, copy.map_row, copy.map_matrix});
      scope.add_gradient(map.map, std::move(x_gradient), Rounds::no);
    }
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
