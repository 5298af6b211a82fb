// The layer-wise loss scale of arrays: what a layer's incoming gradient is multiplied by, and joins of
// gradients that carry different scales.
#pragma once

#include <halfscope/device/array.hpp>
#include <halfscope/scaling/layerwise_scale.hpp>

namespace halfscope {

/// `layerwise_scale` of a layer with `weight` (.., in, out) whose incoming `gradient` carries `carried`; 1
/// for a gradient that is not finite. Bounded so that the scaled gradient itself stays below options.largest,
/// too.
[[nodiscard]] double layer_scale(const Array& gradient, const Array& weight, double carried,
                                 const LayerwiseOptions& options);

/// Multiplies by a power of two, and so exactly as far as FP32 reaches; the values become FP32 unless factor
/// is 1.
void rescale(Array& values, double factor);

/// A gradient, and the scale that it carries.
struct ScaledGradient {
  Array& values;
  double scale;
};

/// Brings two gradients of one tensor to one scale and returns it: the larger one, or where their sum might
/// pass `largest` then a smaller one, down to the smaller of the two. Exact, where FP32's range holds it.
double bring_to_one_scale(const ScaledGradient& a, const ScaledGradient& b, double largest);

}  // namespace halfscope
