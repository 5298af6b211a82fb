// The layer-wise adaptive loss scale of Zhao et al., "Adaptive Loss Scaling for Mixed Precision Training"
// (arXiv:1910.12385): what a layer multiplies its incoming gradient by.
#pragma once

#include <cstdint>

namespace halfscope {

/// Statistics of a layer whose backward pass computes dX = g W: the incoming gradient g, with the scale that
/// it carries already, and the weights W.
struct LayerStatistics {
  double gradient_mean = 0;
  double gradient_deviation = 0;
  double gradient_max_abs = 0;
  double weight_mean = 0;
  double weight_deviation = 0;
  double weight_max_abs = 0;
  std::int64_t fan_in = 1;   ///< products that an element of dX adds up
  double carried_scale = 1;  ///< the scales of the layers nearer the loss, multiplied
};

struct LayerwiseOptions {
  double smallest = 6e-8;         ///< FP16's: smaller magnitudes are lost
  double largest = 65504;         ///< FP16's
  double underflow_share = 1e-3;  ///< share of the elements of dX that may be lost; in (0, 0.5]
  double scale_bound = 16;        ///< bound of one layer's scale
  double carried_bound = 1024;    ///< bound of all of them multiplied
};

/// The power of two to multiply g by: at most what it takes to lose no more than underflow_share of dX, taken
/// to be normal with mean 0, and at least 1, but never more than the bounds or than a sum of fan_in products
/// has room for; 1 where g or W is all zeros. It acts inside the backward pass, layer by layer
/// (LayerwiseScaler asks for it): the weight gradients of a layer are divided by the scale that its g
/// carries. Throws InvalidArgument for options out of range.
[[nodiscard]] double layerwise_scale(const LayerStatistics& layer, const LayerwiseOptions& options = {});

}  // namespace halfscope
