// Products of patches and weights, group by group, and biases of channels.
#include "sim/layers/patch_products.hpp"

#include <utility>
#include <vector>

#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/dilate.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/matrix.hpp"

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

/// A group of channels: the first of its patches' channels, and its number among several.
struct Group {
  std::int64_t first_channel = 0;
  std::int32_t part = whole_tensor;
};

/// (positions, elements): the patches of a group, one after the other. Gathered on the host, where their
/// formats are applied, for the active device.
Array gathered(const Patches& patches, const Group& group) {
  const Array copy = patches.images.device() == Device::cpu ? Array{} : patches.images.to(Device::cpu);
  const std::vector<std::int32_t> positions = patches.offsets->position.to_host(),
                                  elements = patches.offsets->element.to_host();
  const std::span<const float> images =
      seen(copy, patches.images).values().subspan(static_cast<std::size_t>(group.first_channel));
  Array matrix({std::ssize(positions), std::ssize(elements)}, Device::cpu);
  float* to = matrix.data();
  for (const std::int32_t position : positions)
    for (const std::int32_t element : elements) *to++ = images[static_cast<std::size_t>(position + element)];
  return active_device() == Device::cpu ? std::move(matrix) : matrix.to(active_device());
}

bool has_formats(const PatchProduct& product) {
  return product.operands.has_format(product.patches) || product.operands.has_format(product.other);
}

/// multiply_patches of operands that have formats of their own.
void multiply_images(const Patches& patches, const Group& group, const Array& weight,
                     const PatchProduct& product, Array& y) {
  const Array matrix = gathered(patches, group);
  const std::int64_t elements = matrix.extent(1), out = static_cast<std::int64_t>(weight.size()) / elements;
  const Array left = product.operands.image(product.casts, {matrix, matrix.extent(0), elements},
                                            {product.patches, SummedAxis::columns}, group.part);
  const Array right = product.operands.image(product.casts, {weight, elements, out},
                                             {product.other, SummedAxis::rows}, group.part);
  multiply_rows(seen(left, matrix).view(), MatrixView{seen(right, weight).view(), elements, out},
                product.model, y.values());
}

/// multiply_gradient of operands that have formats of their own.
void multiply_gradient_images(const Patches& patches, const Group& group, const Array& gradient,
                              const PatchProduct& product, Array& of_weight) {
  const Array matrix = gathered(patches, group);
  const std::int64_t positions = matrix.extent(0),
                     out = static_cast<std::int64_t>(gradient.size()) / positions;
  const Array left = product.operands.image(product.casts, {matrix, positions, matrix.extent(1)},
                                            {product.patches, SummedAxis::rows}, group.part);
  const Array right = product.operands.image(product.casts, {gradient, positions, out},
                                             {product.other, SummedAxis::rows}, group.part);
  const Array sums = weight_gradient(
      {seen(left, matrix).view(), seen(right, gradient).view(), matrix.extent(1), out}, product.model);
  convert(sums.view(), of_weight.view());
}

/// The product of one group's patches and its part of a weight.
void multiply_patches(const Patches& patches, const Group& group, const Array& weight,
                      const PatchProduct& product, Array& y) {
  if (has_formats(product)) return multiply_images(patches, group, weight, product, y);
  const PatchOffsets& offsets = *patches.offsets;
  const auto elements = static_cast<std::int64_t>(offsets.element.size());
  gemm({ElementReader(patches.from_channel(group.first_channel)), offsets.position.values(),
        offsets.element.values(), MatrixLayout::row_major, offsets.stride},
       {ElementReader(weight.view()), elements, static_cast<std::int64_t>(weight.size()) / elements},
       y.values(), product.model);
}

/// The product of one group's transposed patches and its part of the output's gradient.
void multiply_gradient(const Patches& patches, const Group& group, const Array& gradient,
                       const PatchProduct& product, Array& weight_gradient) {
  if (has_formats(product))
    return multiply_gradient_images(patches, group, gradient, product, weight_gradient);
  const PatchOffsets& offsets = *patches.offsets;
  const auto positions = static_cast<std::int64_t>(offsets.position.size());
  gemm({ElementReader(patches.from_channel(group.first_channel)), offsets.element.values(),
        offsets.position.values(), MatrixLayout::transposed, offsets.stride},
       {ElementReader(gradient.view()), positions, static_cast<std::int64_t>(gradient.size()) / positions},
       weight_gradient.values(), product.model);
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
                       const PatchProduct& product) {
  Array y(std::move(output));
  const std::int64_t channels = weight.extent(2), groups = patches.images.extent(3) / channels;
  if (groups == 1) {
    multiply_patches(patches, {}, weight, product, y);
    return y;
  }
  for_groups(groups, weight.extent(3), [&](std::int64_t g, const ColumnRange& range) {
    Array part({static_cast<std::int64_t>(patches.offsets->position.size()), range.count});
    multiply_patches(patches, {g * channels, static_cast<std::int32_t>(g)}, columns_of(weight, range),
                     product, part);
    set_columns(part, range, y);
  });
  return y;
}

Array patches_weight_gradient(const Patches& patches, const Array& gradient, const Shape& weight,
                              const PatchProduct& product) {
  Array result(weight);
  const std::int64_t groups = patches.images.extent(3) / weight[2];
  if (groups == 1) {
    multiply_gradient(patches, {}, gradient, product, result);
    return result;
  }
  for_groups(groups, weight[3], [&](std::int64_t g, const ColumnRange& range) {
    Array part({static_cast<std::int64_t>(patches.offsets->element.size()), range.count});
    multiply_gradient(patches, {g * weight[2], static_cast<std::int32_t>(g)}, columns_of(gradient, range),
                      product, part);
    set_columns(part, range, result);
  });
  return result;
}

Array convolve_back(Array gradient, const ImageShape& images, const PatchGrid& grid, const Array& weight,
                    const PatchProduct& product) {
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
                          {images.batch, images.height, images.width, images.channels}, product);
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
