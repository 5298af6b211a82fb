// Forward and backward of the transposed convolution: a convolution's products, each in another's place.
#include "sim/layers/layers.hpp"

#include <fmt/format.h>

#include "sim/layers/patch_products.hpp"

namespace halfscope {
namespace {

/// The convolution whose backward pass is the layer: from images of y's shape to ones of x's.
struct TransposedGeometry {
  PatchGrid grid;
  ImageShape small{}, large{};  ///< shapes of x and of y
};

void check_transposed_shapes(const std::string& name, const Shape& x, const Shape& weight,
                             const ConvTranspose2dParameters& parameters) {
  const Stride& stride = parameters.stride;
  if (stride.rows < 1 || stride.columns < 1) {
    throw InvalidArgument(
        fmt::format("layer {}: stride {}x{}; give 1 or more", name, stride.rows, stride.columns));
  }
  if (weight.size() == 4 && x.size() == 4 && x[3] == weight[3]) return;
  throw InvalidArgument("layer " + name + ": input " + to_string(x) + " does not fit weight " +
                        to_string(weight) + ", whose axes are height, width, out, in");
}

/// Throws where an output would have no pixels, or one of its patches zeros of the border alone.
void check_transposed_grid(const std::string& name, const TransposedGeometry& geometry) {
  const auto& [grid, small, large] = geometry;
  const auto fits = [](std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t border) {
    return from >= 1 && to >= 1 && border >= 0 && border < kernel;
  };
  if (fits(small.height, large.height, grid.height, grid.border.rows) &&
      fits(small.width, large.width, grid.width, grid.border.columns)) {
    return;
  }
  throw InvalidArgument(
      fmt::format("layer {}: {}x{} images, a {}x{} kernel and padding {}x{} make an output of {}x{}; padding "
                  "is from 0 to "
                  "below the kernel's size, and leaves at least one pixel",
                  name, small.height, small.width, grid.height, grid.width, grid.border.rows,
                  grid.border.columns, large.height, large.width));
}

TransposedGeometry transposed_geometry(const Shape& x, const Shape& weight,
                                       const ConvTranspose2dParameters& parameters) {
  const Stride& stride = parameters.stride;
  const Border& padding = parameters.padding;
  return {{weight[0], weight[1], padding, stride},
          {x[0], x[1], x[2], x[3]},
          {x[0], (x[1] - 1) * stride.rows - 2 * padding.rows + weight[0],
           (x[2] - 1) * stride.columns - 2 * padding.columns + weight[1], weight[2]}};
}

}  // namespace

TensorRef conv_transpose2d(Tape& tape, const std::string& name, TensorRef x,
                           const ConvTranspose2dParameters& parameters) {
  const Operation operation = tape.operation("conv_transpose2d", name, {&x});
  const TensorRef w = operation.parameter(parameters.weight);
  const Shape& weight = tape.value(w).shape();
  check_transposed_shapes(name, tape.value(x).shape(), weight, parameters);
  const TransposedGeometry geometry = transposed_geometry(tape.value(x).shape(), weight, parameters);
  check_transposed_grid(name, geometry);
  const AccumulateModel model = operation.policy().products;
  const Operands operands(operation, name);
  Array y = convolve_back(tape.value(x).clone(), geometry.large, geometry.grid, tape.value(w),
                          {model, operands, operation.casts(), x_of_forward, weight_of_forward});
  std::optional<TensorRef> bias;
  if (parameters.bias != nullptr) bias = add_channel_bias(operation, name, *parameters.bias, y);

  const auto backward = [x, w, bias, geometry, model, operands](BackwardScope& scope, Array gradient) {
    if (bias) add_channel_bias_gradient(scope, *bias, gradient);
    const Patches patches = patches_of(gradient, geometry.large, geometry.grid, geometry.large.channels);
    const Array &of_output = scope.value(x), &kernel = scope.value(w);
    scope.add_gradient(
        w, patches_weight_gradient(patches, of_output, kernel.shape(),
                                   {model, operands, scope.casts(), gradient_of_weight, x_of_weight}));
    if (!scope.needs_gradient(x)) return;
    scope.add_gradient(x,
                       convolve_patches(patches, kernel, of_output.shape(),
                                        {model, operands, scope.casts(), gradient_of_data, weight_of_data}));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
