// Convolutions with strides, padding, rectangular kernels and groups.
#include "sim/layers/layers.hpp"
#include "tests/reference/layers.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::convolution_layer_cases {
namespace {

using Geometry = reference::ConvolutionGeometry;

LayerCase convolution(std::string name, Shape input, Shape weight, const Geometry& geometry = {}) {
  const std::int64_t out = weight[3];
  return {std::move(name), std::move(input),
          [weight, out](ParameterStore& s) {
            s.add("w", uniform_array(weight, -1, 1, 2));
            s.add("b", uniform_array({out}, -1, 1, 3));
          },
          [geometry](Tape& t, TensorRef x, ParameterStore& s) {
            Conv2dParameters layer{.weight = parameter(s, 1),
                                   .bias = &parameter(s, 2),
                                   .stride = {geometry.stride, geometry.across()},
                                   .groups = geometry.groups};
            if (geometry.row_padding >= 0) layer.padding = {geometry.row_padding, geometry.column_padding};
            return conv2d(t, "y", x, layer);
          },
          [geometry](const ParameterStore& s) {
            return reference::conv2d(master(s, 0), master(s, 1), &master(s, 2), geometry);
          }};
}

Geometry stride(std::int64_t pixels) {
  return {.stride = pixels};
}

std::vector<LayerCase> cases() {
  return {
      convolution("conv2d with bias", {2, 4, 3, 2}, {3, 3, 2, 3}),
      convolution("conv2d 1x1", {2, 3, 2, 3}, {1, 1, 3, 4}),
      convolution("conv2d 5x5", {1, 4, 6, 2}, {5, 5, 2, 3}),
      convolution("conv2d stride 2", {2, 4, 6, 2}, {3, 3, 2, 3}, stride(2)),
      convolution("conv2d stride 2, odd sides", {2, 5, 7, 2}, {3, 3, 2, 3}, stride(2)),
      convolution("conv2d 1x1 stride 2", {2, 5, 4, 3}, {1, 1, 3, 4}, stride(2)),
      convolution("conv2d 7x7 stride 2", {1, 9, 8, 2}, {7, 7, 2, 3}, stride(2)),
      convolution("conv2d 3x3 stride 4", {1, 9, 7, 2}, {3, 3, 2, 2}, stride(4)),
      convolution("conv2d stride above the sides", {2, 2, 3, 2}, {3, 3, 2, 2}, stride(5)),
      convolution("conv2d stride 1x2", {2, 5, 8, 2}, {5, 5, 2, 3}, {.stride = 1, .column_stride = 2}),
      convolution("conv2d stride 3x1, odd sides", {2, 7, 5, 2}, {3, 3, 2, 3},
                  {.stride = 3, .column_stride = 1}),
      convolution("conv2d stride 2x3 of 2 groups", {1, 6, 7, 4}, {3, 5, 2, 4},
                  {.stride = 2, .groups = 2, .column_stride = 3}),
      convolution("conv2d 1x5", {2, 3, 6, 2}, {1, 5, 2, 3}),
      convolution("conv2d 5x1", {1, 6, 3, 2}, {5, 1, 2, 3}),
      convolution("conv2d 1x3 without padding", {2, 3, 5, 2}, {1, 3, 2, 3},
                  {.row_padding = 0, .column_padding = 0}),
      convolution("conv2d 3x3 without padding, stride 2", {1, 8, 6, 2}, {3, 3, 2, 3},
                  {.stride = 2, .row_padding = 0, .column_padding = 0}),
      convolution("conv2d 4x2 with padding 1x0", {1, 6, 5, 2}, {4, 2, 2, 3},
                  {.row_padding = 1, .column_padding = 0}),
      convolution("conv2d 3x5 with padding 2x1, stride 3", {2, 7, 9, 1}, {3, 5, 1, 2},
                  {.stride = 3, .row_padding = 2, .column_padding = 1}),
      convolution("conv2d 3x3 as large as the images", {2, 3, 3, 2}, {3, 3, 2, 3},
                  {.row_padding = 0, .column_padding = 0}),
      convolution("conv2d of 2 groups", {2, 4, 5, 4}, {3, 3, 2, 6}, {.groups = 2}),
      convolution("conv2d 1x1 of 3 groups", {2, 3, 4, 6}, {1, 1, 2, 3}, {.groups = 3}),
      convolution("conv2d 5x5 of 2 groups, stride 2", {1, 7, 6, 4}, {5, 5, 2, 4}, {.stride = 2, .groups = 2}),
      convolution("conv2d of a group per channel", {1, 5, 4, 3}, {3, 1, 1, 6},
                  {.row_padding = 0, .column_padding = 0, .groups = 3})};
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::convolution_layer_cases
