// Parts of a transformer's layers beside attention: layer norms, feed-forward networks, positions.
#pragma once

#include <cstdint>
#include <string>

#include "sim/layers/layers.hpp"
#include "sim/models/model.hpp"

namespace halfscope {

/// Adds NAME.gamma of ones and NAME.beta of zeros, (width) each.
[[nodiscard]] LayerNormParameters add_layer_norm(ParameterStore& store, const std::string& name,
                                                 std::int64_t width, float epsilon = 1e-5f);

/// Two matrices with an activation between them (Vaswani et al., NIPS 2017, section 3.3).
struct FeedForward {
  std::string name;
  LinearParameters inner, outer;
};
/// Extents of the matrices (width, hidden) and (hidden, width).
struct FeedForwardSpec {
  std::string name;
  std::int64_t width = 1, hidden = 1;
  float deviation = 0;  ///< deviation of the initial weights; 0: 1 / sqrt(inputs)
};
/// Adds NAME.inner and NAME.outer, each with .weight and .bias, the biases 0.
[[nodiscard]] FeedForward add_feed_forward(ParameterStore& store, const ModelSpec& model,
                                           const FeedForwardSpec& spec);

enum class FeedForwardActivation : std::uint8_t { relu, gelu };
/// y in the shape of x (..., width).
TensorRef feed_forward(Tape& tape, const FeedForward& network, TensorRef x, FeedForwardActivation activation);

/// (batch, time, width) on the active device: of each position the sines and cosines of Vaswani et al.,
/// section 3.5, sines in the even columns, times `amplitude`.
[[nodiscard]] Array sinusoids(const Shape& shape, float amplitude);

}  // namespace halfscope
