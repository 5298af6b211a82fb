// The metric of a generator: how far the images that it makes are from real ones.
#pragma once

#include <functional>
#include <memory>

#include "sim/models/cnn_bn.hpp"

namespace halfscope {

/// Makes images (batch, height, width, channels) from noise (batch, size of the noise), on `tape`.
using Generator = std::function<TensorRef(Tape& tape, Array noise)>;

/// The Fréchet distance (Heusel et al., NIPS 2017) between the features that `judge` sees in the test images
/// and in as many made ones, computed in FP32. The noise is the same in every evaluation, of any run. NaN
/// where a made image is not finite.
struct SampleDistance {
  Generator generator;
  std::int64_t noise_size = 0;
  CnnBn judge;
};
[[nodiscard]] std::unique_ptr<Metric> make_sample_distance(const SampleDistance& options);

}  // namespace halfscope
