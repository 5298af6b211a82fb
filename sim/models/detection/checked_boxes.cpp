// Errors in images and boxes.
#include "sim/models/detection/checked_boxes.hpp"

#include <fmt/format.h>

namespace halfscope {

void check_boxes(std::string_view model, const Batch& batch, std::int64_t classes) {
  if (batch.boxes.empty() && !batch.labels.empty()) {
    throw InvalidArgument(fmt::format(
        "model {} wants boxes, but the data set has labels only; detection_scenes has boxes", model));
  }
  for (const Box& box : batch.boxes) {
    if (box.label >= 0 && box.label < classes && box.example >= 0 && box.example < batch.inputs.extent(0)) {
      continue;
    }
    throw InvalidArgument(fmt::format("model {}: a box of class {} in image {}; expected 0 to {} in 0 to {}",
                                      model, box.label, box.example, classes - 1,
                                      batch.inputs.extent(0) - 1));
  }
}

void check_detector_images(std::string_view model, const Shape& shape, std::int64_t multiple,
                           std::int64_t least) {
  const auto fits = [&](std::int64_t side) { return side >= least && side % multiple == 0; };
  if (shape.size() == 3 && fits(shape[0]) && fits(shape[1])) return;
  throw InvalidArgument(
      fmt::format("model {} pools its images: they need sides that are multiples of {} from {} on, not {}",
                  model, multiple, least, to_string(shape)));
}

}  // namespace halfscope
