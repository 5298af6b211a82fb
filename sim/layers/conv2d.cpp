// Forward and backward of the convolution.
#include "sim/layers/layers.hpp"

#include <fmt/format.h>

#include <memory>

#include "sim/layers/patch_products.hpp"

namespace halfscope {
namespace {

void check_shapes(const std::string& name, const Shape& x, const Shape& weight,
                  const Conv2dParameters& parameters) {
  const Stride& stride = parameters.stride;
  if (stride.rows < 1 || stride.columns < 1) {
    throw InvalidArgument(
        fmt::format("layer {}: stride {}x{}; give 1 or more", name, stride.rows, stride.columns));
  }
  const std::int64_t groups = parameters.groups;
  const bool sized = weight.size() == 4 && x.size() == 4 &&
                     (parameters.padding || (weight[0] % 2 == 1 && weight[1] % 2 == 1));
  if (sized && groups >= 1 && x[3] == groups * weight[2] && weight[3] % groups == 0) return;
  throw InvalidArgument("layer " + name + ": input " + to_string(x) + " does not fit weight " +
                        to_string(weight) + (groups == 1 ? "" : fmt::format(" of {} groups", groups)));
}

/// Throws where the kernel is larger than the padded image, or where a patch would hold zeros alone.
void check_grid(const std::string& name, const ImageShape& images, const PatchGrid& grid) {
  const auto fits = [](std::int64_t pixels, std::int64_t kernel, std::int64_t border) {
    return border >= 0 && border < kernel && pixels + 2 * border >= kernel;
  };
  if (fits(images.height, grid.height, grid.border.rows) &&
      fits(images.width, grid.width, grid.border.columns)) {
    return;
  }
  throw InvalidArgument(fmt::format(
      "layer {}: a {}x{} kernel with padding {}x{} has no place in {}x{} images; padding is from 0 to below "
      "the kernel's size, and images with it are no smaller than the kernel",
      name, grid.height, grid.width, grid.border.rows, grid.border.columns, images.height, images.width));
}

PatchGrid grid_of(const Shape& weight, const Conv2dParameters& parameters) {
  const Border same{weight[0] / 2, weight[1] / 2};
  return {weight[0], weight[1], parameters.padding.value_or(same), parameters.stride};
}

}  // namespace

TensorRef conv2d(Tape& tape, const std::string& name, TensorRef x, const Conv2dParameters& parameters) {
  const Operation operation = tape.operation("conv2d", name, {&x});
  const TensorRef w = operation.parameter(parameters.weight);
  const Shape& shape = tape.value(x).shape();
  const Array& weight = tape.value(w);
  check_shapes(name, shape, weight.shape(), parameters);
  const ImageShape images{shape[0], shape[1], shape[2], shape[3]};
  const PatchGrid grid = grid_of(weight.shape(), parameters);
  check_grid(name, images, grid);
  const Shape output{images.batch, grid.down(images.height), grid.across(images.width), weight.extent(3)};
  auto patches = std::make_shared<Patches>(patches_of(tape.value(x), images, grid, weight.extent(2)));
  const AccumulateModel model = operation.policy().products;
  const Operands operands(operation, name);
  Array y = convolve_patches(*patches, weight, output,
                             {model, operands, operation.casts(), x_of_forward, weight_of_forward});
  std::optional<TensorRef> bias;
  if (parameters.bias != nullptr) bias = add_channel_bias(operation, name, *parameters.bias, y);

  const auto backward = [x, w, bias, images, grid, model, operands, patches](BackwardScope& scope,
                                                                             Array gradient) {
    if (bias) add_channel_bias_gradient(scope, *bias, gradient);
    if (scope.needs_gradient(w))
      scope.add_gradient(
          w, patches_weight_gradient(*patches, gradient, scope.value(w).shape(),
                                     {model, operands, scope.casts(), x_of_weight, gradient_of_weight}));
    if (!scope.needs_gradient(x)) return;
    scope.add_gradient(x, convolve_back(std::move(gradient), images, grid, scope.value(w),
                                        {model, operands, scope.casts(), gradient_of_data, weight_of_data}));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
