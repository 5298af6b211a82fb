// The two files read block by block beside each other.
#include <halfscope/passes/file_updates.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/file_pair.hpp>
#include <halfscope/stats/lost_updates.hpp>

namespace halfscope {
namespace {

LostUpdates count_part(const TensorPair& pair, const TensorPart& part, const Site& site,
                       const FloatFormat& format) {
  LostUpdates found;
  pair.read(part, [&](std::span<const float> before, std::span<const float> update) {
    const UpdateCounters counters = count_lost_updates(site, {format}, before, update);
    found.elements += counters.elements;
    found.nonzero += counters.nonzero;
    found.lost += counters.lost;
    found.nonfinite += std::count_if(update.begin(), update.end(), [](float x) { return !std::isfinite(x); });
  });
  return found;
}

}  // namespace

LostUpdates count_lost_updates(const TensorInFile& weights, const TensorInFile& updates,
                               const FloatFormat& format) {
  const StoredTensor& tensor = updates.tensor();
  if (weights.tensor().shape != tensor.shape) {
    throw InvalidArgument(fmt::format(
        "tensor '{}' has weights of shape {} in {} and updates of shape {} in {}; give one update "
        "for each weight",
        escaped(tensor.name), to_string(weights.tensor().shape), weights.file_name, to_string(tensor.shape),
        updates.file_name));
  }
  const TensorPair pair(weights, updates);
  const std::vector<TensorPart> parts = pair.parts();
  const Site site{.tensor = tensor.name};
  LostUpdates found;
  work_through(
      std::span<const TensorPart>(parts),
      [&](const TensorPart& part) { return count_part(pair, part, site, format); },
      [&](const TensorPart&, const LostUpdates& part) {
        found.elements += part.elements;
        found.nonzero += part.nonzero;
        found.lost += part.lost;
        found.nonfinite += part.nonfinite;
      });
  return found;
}

}  // namespace halfscope
