// Matrix products over patches of padded images: what a convolution computes forward and backward, and a
// transposed one the other way round.
#pragma once

#include <string>

#include <halfscope/arithmetic/accumulate.hpp>

#include "sim/layers/operands.hpp"
#include "sim/layers/patches.hpp"
#include "sim/tape/tape.hpp"

namespace halfscope {

/// How a layer's product of patches is computed: its sums, and the operands' formats. Patches are quantised
/// as a matrix with a row for each patch, group by group.
struct PatchProduct {
  AccumulateModel model;
  const Operands& operands;
  const CastScope& casts;
  OperandPlace patches, other;  ///< the latter of the weight, or of the tensor beside the patches
};

/// (batch, down, across, out), of the shape `output`: the product of each patch with a weight (height, width,
/// channels of a group, out).
[[nodiscard]] Array convolve_patches(const Patches& patches, const Array& weight, Shape output,
                                     const PatchProduct& product);

/// The gradient of a weight of the shape `weight` from that of the output (batch, down, across, out): one sum
/// over all patches.
[[nodiscard]] Array patches_weight_gradient(const Patches& patches, const Array& gradient,
                                            const Shape& weight, const PatchProduct& product);

/// The gradient of images of the shape `images` from that of the output (batch, down, across, out): each
/// number one sum over (row, column, out) of the kernel turned by 180 degrees, in that order, zeros among its
/// terms where the grid has a stride.
[[nodiscard]] Array convolve_back(Array gradient, const ImageShape& images, const PatchGrid& grid,
                                  const Array& weight, const PatchProduct& product);

/// Adds a bias (out) to y (batch, down, across, out) and returns its place on the tape. Throws
/// InvalidArgument, with the layer's name, for a bias of another size.
TensorRef add_channel_bias(const Operation& operation, const std::string& name, Parameter& parameter,
                           Array& y);
/// Adds the sums over all pixels to the gradient of a bias, in FP32.
void add_channel_bias_gradient(BackwardScope& scope, TensorRef bias, const Array& gradient);

}  // namespace halfscope
