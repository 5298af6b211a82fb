// Transposed convolutions with strides, padding and rectangular kernels.
#include "sim/layers/layers.hpp"
#include "tests/reference/layers.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::transposed_convolution_layer_cases {
namespace {

using Geometry = reference::ConvolutionGeometry;

ConvTranspose2dParameters layer_of(ParameterStore& store, const Geometry& geometry) {
  return {.weight = parameter(store, 1),
          .stride = {geometry.stride, geometry.across()},
          .padding = {geometry.row_padding, geometry.column_padding}};
}

LayerCase without_bias(std::string name, Shape input, Shape weight, const Geometry& geometry) {
  return {std::move(name), std::move(input),
          [weight](ParameterStore& s) { s.add("w", uniform_array(weight, -1, 1, 2)); },
          [geometry](Tape& t, TensorRef x, ParameterStore& s) {
            return conv_transpose2d(t, "y", x, layer_of(s, geometry));
          },
          [geometry](const ParameterStore& s) {
            return reference::conv_transpose2d(master(s, 0), master(s, 1), nullptr, geometry);
          }};
}

LayerCase with_bias(std::string name, Shape input, Shape weight, const Geometry& geometry) {
  return {std::move(name), std::move(input),
          [weight](ParameterStore& s) {
            s.add("w", uniform_array(weight, -1, 1, 2));
            s.add("b", uniform_array({weight[2]}, -1, 1, 3));
          },
          [geometry](Tape& t, TensorRef x, ParameterStore& s) {
            ConvTranspose2dParameters layer = layer_of(s, geometry);
            layer.bias = &parameter(s, 2);
            return conv_transpose2d(t, "y", x, layer);
          },
          [geometry](const ParameterStore& s) {
            return reference::conv_transpose2d(master(s, 0), master(s, 1), &master(s, 2), geometry);
          }};
}

std::vector<LayerCase> cases() {
  constexpr Geometry doubling{.stride = 2, .row_padding = 1, .column_padding = 1};
  return {with_bias("conv_transpose2d 4x4 that doubles", {2, 3, 2, 3}, {4, 4, 2, 3}, doubling),
          without_bias("conv_transpose2d 4x4 of one pixel", {2, 1, 1, 5}, {4, 4, 3, 5},
                       {.row_padding = 0, .column_padding = 0}),
          with_bias("conv_transpose2d 3x3, odd sides", {1, 5, 3, 2}, {3, 3, 3, 2}, doubling),
          without_bias("conv_transpose2d 1x1", {2, 3, 2, 3}, {1, 1, 4, 3},
                       {.row_padding = 0, .column_padding = 0}),
          with_bias("conv_transpose2d 3x3 stride 1", {1, 4, 3, 2}, {3, 3, 2, 2},
                    {.row_padding = 1, .column_padding = 1}),
          without_bias("conv_transpose2d stride above the kernel", {1, 3, 2, 2}, {2, 2, 3, 2},
                       {.stride = 3, .row_padding = 0, .column_padding = 1}),
          with_bias("conv_transpose2d 5x2 stride 3x1 with padding 4x0", {2, 4, 3, 1}, {5, 2, 2, 1},
                    {.stride = 3, .row_padding = 4, .column_padding = 0, .column_stride = 1}),
          without_bias("conv_transpose2d of one pixel to one", {3, 1, 1, 2}, {3, 3, 1, 2},
                       {.stride = 2, .row_padding = 1, .column_padding = 1})};
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::transposed_convolution_layer_cases
