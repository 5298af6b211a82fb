// Weight updates that vanish, counted from a file of weights and a file of updates.
#pragma once

#include <cstdint>

#include <halfscope/format/quantizer.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// `lost` of the `nonzero` updates would not change a weight that is stored as the format says.
struct LostUpdates {
  std::int64_t elements = 0;
  std::int64_t nonzero = 0;
  std::int64_t lost = 0;
  std::int64_t nonfinite = 0;  ///< updates that are infinite or NaN, which no storage keeps
};

/// Element by element, see stats/lost_updates.hpp; on all threads. Throws InvalidArgument where the shapes
/// differ or a file turns out to be damaged.
[[nodiscard]] LostUpdates count_lost_updates(const TensorInFile& weights, const TensorInFile& updates,
                                             const FloatFormat& format);

}  // namespace halfscope
