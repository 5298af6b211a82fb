// Proposals: boxes in which a region proposal network sees an object of any class.
#pragma once

#include <span>
#include <vector>

#include "sim/models/detection/box.hpp"

namespace halfscope {

/// The network's predictions at the anchors of one image.
struct AnchorPredictions {
  std::span<const float> objectness;  // (anchors, 2): logits of background and object
  std::span<const float> offsets;     // (anchors, 4)
};

/// Size of an image in pixels.
struct ImageExtent {
  float height = 0, width = 0;
};

/// The `count` boxes at most that look most like an object, best first: decoded, clipped to the image, and of
/// the 200 best those that overlap no better one by more than 0.7. Boxes below a pixel a side and those that
/// are no numbers are dropped; where none is left, the whole image is the proposal. `example` and `label` are
/// 0.
[[nodiscard]] std::vector<Box> propose(std::span<const Box> anchors, const AnchorPredictions& predictions,
                                       const ImageExtent& image, std::size_t count);

}  // namespace halfscope
