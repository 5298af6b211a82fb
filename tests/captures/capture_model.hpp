// Captured sets computed by the models.
#pragma once

#include "tests/captures/capture.hpp"

namespace halfscope {

/// The step that a set's instruction takes on `core`.
[[nodiscard]] TensorCoreStep step_of_set(const CaptureSet& set, const TensorCore& core);
/// How many results of a tile differ between two steps.
[[nodiscard]] std::size_t count_modelled(const CaptureSet& set, int tile, const TensorCoreStep& one,
                                         const TensorCoreStep& other);

}  // namespace halfscope
