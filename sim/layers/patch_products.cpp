// Products of patches and weights, group by group, and biases of channels.
#include "sim/layers/patch_products.hpp"

#include <utility>

#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/dilate.hpp"
#include "lib/nn/strided_elementwise.hpp"

namespace halfscope {
namespace {

/// Neighbouring columns of a matrix (rows, all).
struct ColumnRange {
  std::int64_t first, count, all;
};

/// (rows, range.count): a copy of those columns.
Array columns_of(const Array& matrix, const ColumnRange& range) {
  const std::int64_t rows = static_cast<std::int64_t>(matrix.size()) / range.all;
  Array columns({rows, range.count}, matrix.dtype());
  copy_columns({rows, range.count}, {matrix.view(), range.first, range.all},
               {columns.view(), 0, range.count});
  return columns;
}

void set_columns(const Array& columns, const ColumnRange& range, Array& matrix) {
  copy_columns({columns.extent(0), range.count}, {columns.view(), 0, range.count},
               {matrix.view(), range.first, range.all});
}

/// Calls body(group, its columns of a matrix with `columns`) for each group.
template <typename Body>
void for_groups(std::int64_t groups, std::int64_t columns, const Body& body) {
  for (std::int64_t g = 0; g < groups; ++g) {
    body(g, ColumnRange{g * (columns / groups), columns / groups, columns});
  }
}

/// The product of one group's patches and its part of a weight.
void multiply_patches(const Patches& patches, std::int64_t first_channel, const Array& weight,
                      const AccumulateModel& model, Array& y) {
  const PatchOffsets& offsets = *patches.offsets;
  const auto elements = static_cast<std::int64_t>(offsets.element.size());
  gemm({ElementReader(patches.from_channel(first_channel)), offsets.position.values(),
        offsets.element.values(), MatrixLayout::row_major, offsets.stride},
       {ElementReader(weight.view()), elements, static_cast<std::int64_t>(weight.size()) / elements},
       y.values(), model);
}

/// The product of one group's transposed patches and its part of the output's gradient.
void multiply_gradient(const Patches& patches, std::int64_t first_channel, const Array& gradient,
                       const AccumulateModel& model, Array& weight_gradient) {
  const PatchOffsets& offsets = *patches.offsets;
  const auto positions = static_cast<std::int64_t>(offsets.position.size());
  gemm({ElementReader(patches.from_channel(first_channel)), offsets.element.values(),
        offsets.position.values(), MatrixLayout::transposed, offsets.stride},
       {ElementReader(gradient.view()), positions, static_cast<std::int64_t>(gradient.size()) / positions},
       weight_gradient.values(), model);
}

/// (taps, out, in): a group's weight (taps, in, out) turned by 180 degrees with its channels swapped.
Array turned(const Array& weight, std::int64_t taps, std::int64_t in, std::int64_t out) {
  Array result({taps * out, in}, weight.dtype());
  const auto count = static_cast<std::size_t>(in * out);
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    transpose(weight.view().part(static_cast<std::size_t>(taps - 1 - tap) * count, count), in, out,
              result.view().part(static_cast<std::size_t>(tap) * count, count));
  }
  return result;
}

/// (height, width, out of a group, in of all groups): the weight that convolves gradients back.
Array backward_weight(const Array& weight, std::int64_t groups) {
  const std::int64_t taps = weight.extent(0) * weight.extent(1), in = weight.extent(2),
                     out = weight.extent(3) / groups;
  Array result({weight.extent(0), weight.extent(1), out, groups * in}, weight.dtype());
  if (groups == 1) {
    Array all = turned(weight, taps, in, out);
    all.reshape(result.shape());
    return all;
  }
  for_groups(groups, weight.extent(3), [&](std::int64_t g, const ColumnRange& range) {
    set_columns(turned(columns_of(weight, range), taps, in, out), {g * in, in, groups * in}, result);
  });
  return result;
}

/// The gradient of an output with a stride as one without: zeros stand where no patch has its corner.
Array spread_out(Array gradient, const ImageShape& shape, const Stride& stride) {
  if (stride == Stride{}) return gradient;
  Array result({shape.batch, shape.height, shape.width, shape.channels}, gradient.dtype());
  spread(gradient.view(), shape, stride, result.view());
  return result;
}

}  // namespace

Array convolve_patches(const Patches& patches, const Array& weight, Shape output,
                       const AccumulateModel& model) {
  Array y(std::move(output));
  const std::int64_t channels = weight.extent(2), groups = patches.images.extent(3) / channels;
  if (groups == 1) {
    multiply_patches(patches, 0, weight, model, y);
    return y;
  }
  for_groups(groups, weight.extent(3), [&](std::int64_t g, const ColumnRange& range) {
    Array part({static_cast<std::int64_t>(patches.offsets->position.size()), range.count});
    multiply_patches(patches, g * channels, columns_of(weight, range), model, part);
    set_columns(part, range, y);
  });
  return y;
}

Array patches_weight_gradient(const Patches& patches, const Array& gradient, const Shape& weight,
                              const AccumulateModel& model) {
  Array result(weight);
  const std::int64_t groups = patches.images.extent(3) / weight[2];
  if (groups == 1) {
    multiply_gradient(patches, 0, gradient, model, result);
    return result;
  }
  for_groups(groups, weight[3], [&](std::int64_t g, const ColumnRange& range) {
    Array part({static_cast<std::int64_t>(patches.offsets->element.size()), range.count});
    multiply_gradient(patches, g * weight[2], columns_of(gradient, range), model, part);
    set_columns(part, range, result);
  });
  return result;
}

Array convolve_back(Array gradient, const ImageShape& images, const PatchGrid& grid, const Array& weight,
                    const AccumulateModel& model) {
  const std::int64_t groups = images.channels / weight.extent(2), out = weight.extent(3);
  PatchGrid every_patch = grid;
  every_patch.stride = {};
  const ImageShape spread_shape{images.batch, every_patch.down(images.height),
                                every_patch.across(images.width), out};
  gradient = spread_out(std::move(gradient), spread_shape, grid.stride);
  const PatchGrid back{
      grid.height, grid.width, {grid.height - 1 - grid.border.rows, grid.width - 1 - grid.border.columns}};
  return convolve_patches(patches_of(gradient, spread_shape, back, out / groups),
                          backward_weight(weight, groups),
                          {images.batch, images.height, images.width, images.channels}, model);
}

TensorRef add_channel_bias(const Operation& operation, const std::string& name, Parameter& parameter,
                           Array& y) {
  const TensorRef bias = operation.parameter(parameter);
  if (operation.value(bias).shape() != Shape{y.extent(3)}) {
    throw InvalidArgument("layer " + name + ": bias " + to_string(operation.value(bias).shape()) +
                          " does not fit output " + to_string(y.shape()));
  }
  add_to_rows(operation.value(bias).view(), y.values());
  return bias;
}

void add_channel_bias_gradient(BackwardScope& scope, TensorRef bias, const Array& gradient) {
  Array sums(scope.value(bias).shape());
  const auto channels = static_cast<std::int64_t>(sums.size());
  const auto rows = static_cast<std::int64_t>(gradient.size()) / channels;
  column_sums({.x = ElementReader(gradient.view()), .rows = rows, .columns = channels},
              ScopedAccumulate{}.model, sums.values());
  scope.add_gradient(bias, std::move(sums));
}

}  // namespace halfscope
